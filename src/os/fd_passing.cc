#include "os/fd_passing.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstring>

namespace nd7::os {
namespace {

constexpr std::size_t kControlSize = CMSG_SPACE(sizeof(int) * kPassedFdsMax);

} // namespace

Result<> send_fds(int socket, std::span<const int> fds, std::string_view bytes) {
  if (bytes.empty() || bytes.size() > kPassedBytesMax || fds.size() > kPassedFdsMax) {
    return os_error("send descriptors", EMSGSIZE);
  }
  alignas(cmsghdr) std::array<char, kControlSize> control{};
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return os_error("send descriptors");
  if (static_cast<std::size_t>(sent) != bytes.size()) return os_error("send descriptors", EMSGSIZE);
  return {};
}

Result<PassedMessage> receive_fds(int socket) {
  alignas(cmsghdr) std::array<char, kControlSize> control{};
  std::array<char, kPassedBytesMax> buffer;
  iovec part{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return os_error("receive descriptors");

  PassedMessage result;
  for (cmsghdr* h = CMSG_FIRSTHDR(&message); h != nullptr; h = CMSG_NXTHDR(&message, h)) {
    if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof fd);
      result.fds.emplace_back(fd);
    }
  }
  if ((message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0) {
    return os_error("receive descriptors", EMSGSIZE);
  }
  result.bytes.assign(buffer.data(), static_cast<std::size_t>(got));
  return result;
}

} // namespace nd7::os
