#include "gate/domain.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/seccomp_filter.h"

namespace nd7 {
namespace {

constexpr int last_capability = 63;

// Between fork and exec: plain system calls, no allocation.
[[noreturn]] void give_up(int channel, const char* step) {
  const int error = errno;
  char line[128];
  const int n = std::snprintf(line, sizeof line, "%s: %d", step, error);
  if (n > 0) (void)!::write(channel, line, static_cast<std::size_t>(n));
  _exit(125);
}

bool send_descriptor(int channel, int fd) {
  char byte = 'L';
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)]{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return sendmsg(channel, &message, MSG_NOSIGNAL) == 1;
}

int set_capabilities(std::uint64_t kept) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (syscall(SYS_capget, &header, data) != 0) return -1;
  for (int i = 0; i < 2; ++i) {
    const auto mask = static_cast<std::uint32_t>(kept >> (32 * i));
    data[i].permitted &= mask;
    data[i].effective = data[i].permitted;
    data[i].inheritable = 0;
  }
  return static_cast<int>(syscall(SYS_capset, &header, data));
}

int drop_capabilities(std::uint64_t kept) {
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  // Without CAP_SETPCAP the bounding set stays; no_new_privs and the permitted set hold then.
  for (int c = 0; c <= last_capability; ++c)
    if ((kept >> c & 1) == 0) prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
  return set_capabilities(kept);
}

// As they were when `nd7 run` started: nohup's and the shell's choices reach the program.
void restore_signals(const Domain& domain) {
  struct sigaction action {};
  for (int number = 1; number < NSIG; ++number) {
    action.sa_handler = domain.ignored[static_cast<std::size_t>(number)] ? SIG_IGN : SIG_DFL;
    sigaction(number, &action, nullptr);
  }
  sigprocmask(SIG_SETMASK, &domain.mask, nullptr);
}

} // namespace

std::uint64_t kept_capabilities() {
  const auto bit = [](int c) { return std::uint64_t{1} << c; };
  return bit(CAP_CHOWN) | bit(CAP_DAC_OVERRIDE) | bit(CAP_DAC_READ_SEARCH) | bit(CAP_FOWNER) |
         bit(CAP_FSETID);
}

Result<> keep_capabilities(std::uint64_t kept) {
  if (drop_capabilities(kept) != 0) return os_error("drop capabilities");
  return {};
}

void enter(const Domain& domain, int channel, pid_t supervisor) {
  // If the supervisor dies, so do we; if it died before this line, too.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up(channel, "parent death signal");
  if (getppid() != supervisor) _exit(125);
  restore_signals(domain);
  setrlimit(RLIMIT_NOFILE, &domain.files);
  // Nothing of ours and nothing inherited but 0, 1, 2: the channel moves to 3, the ruleset to 4.
  int at[2] = {channel, domain.ruleset.get()};
  if (dup3(at[0], 120, O_CLOEXEC) < 0 || dup3(at[1], 121, O_CLOEXEC) < 0 ||
      dup3(120, 3, O_CLOEXEC) < 0 || dup3(121, 4, O_CLOEXEC) < 0)
    give_up(channel, "descriptors");
  channel = 3;
  if (syscall(SYS_close_range, 5U, ~0U, 0U) != 0) give_up(channel, "close descriptors");
  // The program's arguments first: nothing may be allocated once the filter is on.
  std::vector<char*> argv, environment;
  for (const std::string& text : domain.argv) argv.push_back(const_cast<char*>(text.c_str()));
  for (const std::string& text : domain.environment)
    environment.push_back(const_cast<char*>(text.c_str()));
  argv.push_back(nullptr);
  environment.push_back(nullptr);

  if (drop_capabilities(domain.capabilities) != 0) give_up(channel, "capabilities");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) give_up(channel, "no_new_privs");
  // From here nothing opens a new host path by itself.
  if (os::restrict_self(4) != 0) give_up(channel, "landlock");
  close(4);
  const int listener =
      os::install_filter(domain.filter.data(), static_cast<unsigned short>(domain.filter.size()));
  if (listener < 0) give_up(channel, "seccomp filter");
  // From here every trapped call waits for the supervisor.
  if (!send_descriptor(channel, listener)) _exit(125);
  close(listener);
  char go = 0;
  ssize_t n;
  do n = ::read(channel, &go, 1);
  while (n < 0 && errno == EINTR);
  if (n != 1) _exit(125);
  execve(domain.program.c_str(), argv.data(), environment.data());
  const int error = errno;
  char line[64];
  const int length = std::snprintf(line, sizeof line, "exec: %d", error);
  if (length > 0) (void)!::write(channel, line, static_cast<std::size_t>(length));
  _exit(error == ENOENT ? 127 : 126);
}

} // namespace nd7
