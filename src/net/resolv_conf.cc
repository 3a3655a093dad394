#include "net/resolv_conf.h"

#include <fmt/format.h>
#include <net/if.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>

namespace nd7 {
namespace {

constexpr std::size_t kFileBytesMax = 65536;
constexpr std::int64_t kLookEvery_ms = 1000;

} // namespace

std::vector<UpstreamServer> parse_resolv_conf(std::string_view text) {
  std::vector<UpstreamServer> result;
  while (!text.empty() && result.size() < kUpstreamServersMax) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    // The keyword must begin the line and be followed by white space.
    constexpr std::string_view kKeyword = "nameserver";
    if (!line.starts_with(kKeyword)) continue;
    line.remove_prefix(kKeyword.size());
    const std::size_t start = line.find_first_not_of(" \t");
    if (start == 0 || start == std::string_view::npos) continue;
    line.remove_prefix(start);
    std::string_view word = line.substr(0, line.find_first_of(" \t\r;#"));
    UpstreamServer server;
    if (const std::size_t percent = word.find('%'); percent != std::string_view::npos) {
      server.scope = if_nametoindex(std::string(word.substr(percent + 1)).c_str());
      if (server.scope == 0) continue;
      word = word.substr(0, percent);
    }
    const auto address = parse_address(word, 53);
    if (!address) continue;
    server.address = *address;
    result.push_back(server);
  }
  return result;
}

const std::vector<UpstreamServer>& ResolvConf::servers() {
  const std::int64_t now = std::chrono::duration_cast<std::chrono::milliseconds>(
                               std::chrono::steady_clock::now().time_since_epoch())
                               .count();
  if (looked_ms_ >= 0 && now - looked_ms_ < kLookEvery_ms) return servers_;
  looked_ms_ = now;
  struct stat s {};
  const std::string seen =
      stat(path_.c_str(), &s) != 0
          ? "missing"
          : fmt::format("{} {} {} {}.{} {}.{}", s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec,
                        s.st_mtim.tv_nsec, s.st_ctim.tv_sec, s.st_ctim.tv_nsec);
  if (seen == seen_) return servers_;
  seen_ = seen;
  std::ifstream file(path_, std::ios::binary);
  std::string text(kFileBytesMax, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  servers_ = parse_resolv_conf(text);
  return servers_;
}

} // namespace nd7
