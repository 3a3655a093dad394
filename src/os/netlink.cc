#include "os/netlink.h"

#include <sys/socket.h>

#include <array>

#include "base/fd.h"

namespace nd7::os {
namespace {

constexpr std::size_t kMessagesMax = 200'000; // addresses, routes or sockets in one answer

struct AttributeHeader {
  std::uint16_t length;
  std::uint16_t type;
};

// Without NLA_F_NESTED and NLA_F_NET_BYTEORDER.
constexpr std::uint16_t kTypeMask = 0x3fff;

constexpr std::size_t aligned(std::size_t size) {
  return (size + 3) & ~std::size_t{3};
}

} // namespace

void NetlinkRequest::attribute(std::uint16_t type, std::string_view data) {
  payload_.resize(aligned(payload_.size()));
  const AttributeHeader header{static_cast<std::uint16_t>(sizeof(AttributeHeader) + data.size()),
                               type};
  payload_.append(reinterpret_cast<const char*>(&header), sizeof header);
  payload_.append(data);
}

std::string NetlinkRequest::bytes() const {
  nlmsghdr header = header_;
  header.nlmsg_len = static_cast<std::uint32_t>(sizeof header + payload_.size());
  std::string result(reinterpret_cast<const char*>(&header), sizeof header);
  result += payload_;
  return result;
}

void NetlinkMessage::attributes(
    std::size_t body_size, const std::function<void(std::uint16_t, std::string_view)>& each) const {
  std::size_t at = aligned(body_size);
  while (at + sizeof(AttributeHeader) <= payload.size()) {
    AttributeHeader header;
    std::memcpy(&header, payload.data() + at, sizeof header);
    if (header.length < sizeof header || at + header.length > payload.size()) return;
    each(header.type & kTypeMask,
         payload.substr(at + sizeof header, header.length - sizeof header));
    at += aligned(header.length);
  }
}

Result<> netlink_ask(int protocol, const NetlinkRequest& request,
                     const std::function<void(const NetlinkMessage&)>& each) {
  Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
  if (!socket) return os_error("open a netlink socket");
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  const std::string bytes = request.bytes();
  if (sendto(socket.get(), bytes.data(), bytes.size(), 0,
             reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel) < 0) {
    return os_error("ask over netlink");
  }
  std::array<char, 32768> buffer;
  for (std::size_t messages = 0; messages < kMessagesMax;) {
    sockaddr_nl from{};
    iovec part{buffer.data(), buffer.size()};
    msghdr message{};
    message.msg_name = &from;
    message.msg_namelen = sizeof from;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const ssize_t got = recvmsg(socket.get(), &message, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os_error("read netlink");
    if ((message.msg_flags & MSG_TRUNC) != 0) return os_error("read netlink", EMSGSIZE);
    if (from.nl_pid != 0) continue; // only the kernel may answer
    const std::string_view all(buffer.data(), static_cast<std::size_t>(got));
    for (std::size_t at = 0; at + sizeof(nlmsghdr) <= all.size();) {
      nlmsghdr header;
      std::memcpy(&header, all.data() + at, sizeof header);
      if (header.nlmsg_len < sizeof header || at + header.nlmsg_len > all.size()) {
        return os_error("read netlink", EPROTO);
      }
      const std::string_view payload =
          all.substr(at + sizeof header, header.nlmsg_len - sizeof header);
      at += aligned(header.nlmsg_len);
      ++messages;
      if (header.nlmsg_type == NLMSG_DONE) return {};
      if (header.nlmsg_type == NLMSG_ERROR) {
        std::int32_t error = 0;
        if (payload.size() < sizeof error) return os_error("read netlink", EPROTO);
        std::memcpy(&error, payload.data(), sizeof error);
        if (error == 0) return {};
        return os_error("netlink", -error);
      }
      each(NetlinkMessage{header.nlmsg_type, payload});
      if (!request.is_dump()) return {};
    }
  }
  return os_error("read netlink", EOVERFLOW);
}

} // namespace nd7::os
