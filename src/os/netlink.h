// One question over netlink and its answers, for os/sock_diag, os/netns and net/interfaces.
//
// Each question opens and closes its own socket (3 µs), so no state can get out of step.
#pragma once

#include <linux/netlink.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/result.h"

namespace nd7::os {

// The bytes of a header structure followed by attributes.
class NetlinkRequest {
public:
  template <class Body> NetlinkRequest(std::uint16_t type, std::uint16_t flags, const Body& body) {
    static_assert(std::is_trivially_copyable_v<Body>);
    header_.nlmsg_type = type;
    header_.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
    payload_.assign(reinterpret_cast<const char*>(&body), sizeof body);
  }
  void attribute(std::uint16_t type, std::string_view data);
  bool is_dump() const { return (header_.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP; }
  std::string bytes() const;

private:
  nlmsghdr header_{};
  std::string payload_;
};

// An answer: its type and its payload (without the netlink header).
struct NetlinkMessage {
  std::uint16_t type = 0;
  std::string_view payload;

  template <class Body> std::optional<Body> body() const {
    Body result;
    if (payload.size() < sizeof result) return std::nullopt;
    std::memcpy(&result, payload.data(), sizeof result);
    return result;
  }
  // Calls each(type, data) for the attributes behind a body of this size.
  void attributes(std::size_t body_size,
                  const std::function<void(std::uint16_t, std::string_view)>& each) const;
};

// Asks the kernel in the caller's network namespace. `protocol`: NETLINK_ROUTE, NETLINK_SOCK_DIAG.
// A dump ends with the kernel's DONE, any other question with its first answer or acknowledgement.
// An errno answered by the kernel is the error's os_errno.
Result<> netlink_ask(int protocol, const NetlinkRequest& request,
                     const std::function<void(const NetlinkMessage&)>& each);

} // namespace nd7::os
