// The host's resolvers, from /etc/resolv.conf (resolv.conf(5)).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/address.h"

namespace nd7 {

struct UpstreamServer {
  Address address;         // with its port
  std::uint32_t scope = 0; // interface index of a link-local address
  friend bool operator==(const UpstreamServer&, const UpstreamServer&) = default;
};

inline constexpr std::size_t kUpstreamServersMax = 3; // as glibc's MAXNS

// The `nameserver` lines, at most three; everything else is the business of the asker's own
// library. Lines that cannot be read are passed over, as glibc does.
std::vector<UpstreamServer> parse_resolv_conf(std::string_view text);

// Follows the file: servers() reads it again when it changed, looking at most once a second.
class ResolvConf {
public:
  explicit ResolvConf(std::string path = "/etc/resolv.conf") : path_(std::move(path)) {}
  // Empty when the file is missing or names none.
  const std::vector<UpstreamServer>& servers();

private:
  std::string path_;
  std::vector<UpstreamServer> servers_;
  std::string seen_;            // identity and times of the file as last read
  std::int64_t looked_ms_ = -1; // steady clock
};

} // namespace nd7
