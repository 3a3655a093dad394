#include "os/seccomp_notify.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "os/kernel_abi.h"

namespace nd7::os {

bool Listener::set_sync_wake_up() {
  return ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP) == 0;
}

Received Listener::receive(seccomp_notif& out) {
  for (;;) {
    // RECV sleeps for ever once nobody is left to notify; poll reports that as HUP.
    pollfd wait{fd_.get(), POLLIN, 0};
    if (poll(&wait, 1, -1) < 0) {
      if (errno == EINTR) continue;
      return Received::failed;
    }
    if ((wait.revents & POLLIN) == 0) {
      if (wait.revents & (POLLHUP | POLLERR | POLLNVAL)) return Received::ended;
      continue;
    }
    std::memset(&out, 0, sizeof out); // the kernel insists
    if (ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_RECV, &out) == 0) return Received::call;
    if (errno == EINTR) continue;
    return errno == ENOENT ? Received::gone : Received::failed;
  }
}

bool Listener::still_valid(std::uint64_t id) const {
  return ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

bool Listener::send(const seccomp_notif_resp& response) {
  seccomp_notif_resp copy = response;
  while (ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_SEND, &copy) != 0)
    if (errno != EINTR) return false;
  return true;
}

bool Listener::answer_value(std::uint64_t id, std::int64_t value) {
  return send({.id = id, .val = value, .error = 0, .flags = 0});
}

bool Listener::answer_error(std::uint64_t id, int error) {
  return send({.id = id, .val = 0, .error = -error, .flags = 0});
}

bool Listener::answer_continue(std::uint64_t id) {
  return send({.id = id, .val = 0, .error = 0, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE});
}

int Listener::add_fd(std::uint64_t id, int fd, bool close_on_exec) {
  seccomp_notif_addfd request{};
  request.id = id;
  request.srcfd = static_cast<__u32>(fd);
  request.newfd_flags = close_on_exec ? O_CLOEXEC : 0;
  int number;
  do number = ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_ADDFD, &request);
  while (number < 0 && errno == EINTR);
  return number;
}

} // namespace nd7::os
