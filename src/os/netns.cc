#include "os/netns.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/rtnetlink.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "os/fd_passing.h"
#include "os/netlink.h"
#include "os/seccomp_filter.h"

namespace nd7::os {
namespace {

// A request is one byte, so the helper has nothing to parse.
constexpr char kRequestV6 = 1;
constexpr char kRequestNonBlocking = 2;
constexpr timeval kAnswerTimeout{2, 0};

// Where setting up can fail; sent to the parent with the errno.
enum class Step : std::uint8_t { done, make, lo_up, route, listen, confine };

struct Report {
  Step step = Step::done;
  std::int32_t error = 0;
};

int make_namespace() {
  // Without CAP_SYS_ADMIN, and in containers that keep it from root, a user namespace is needed.
  // No uid is mapped: nothing here makes files, and the capabilities are full without it.
  if (geteuid() == 0 && unshare(CLONE_NEWNET) == 0) return 0;
  return unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 ? 0 : errno;
}

int lo_up() {
  ifinfomsg link{};
  link.ifi_family = AF_UNSPEC;
  link.ifi_index = static_cast<int>(if_nametoindex("lo"));
  link.ifi_flags = IFF_UP;
  link.ifi_change = IFF_UP;
  const auto up = netlink_ask(NETLINK_ROUTE, NetlinkRequest(RTM_NEWLINK, NLM_F_ACK, link),
                              [](const NetlinkMessage&) {});
  return up ? 0 : up.error().os_errno;
}

// ip route add local default dev lo table local: every address is our own.
int route_everything_to_lo(unsigned char family) {
  rtmsg route{};
  route.rtm_family = family;
  route.rtm_table = RT_TABLE_LOCAL;
  route.rtm_protocol = RTPROT_STATIC;
  route.rtm_scope = RT_SCOPE_HOST;
  route.rtm_type = RTN_LOCAL;
  NetlinkRequest request(RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, route);
  const std::uint32_t device = if_nametoindex("lo");
  request.attribute(RTA_OIF,
                    std::string_view(reinterpret_cast<const char*>(&device), sizeof device));
  const auto added = netlink_ask(NETLINK_ROUTE, request, [](const NetlinkMessage&) {});
  return added ? 0 : added.error().os_errno;
}

Fd udp_listener(int family) {
  Fd fd(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return {};
  const int on = 1;
  if (family == AF_INET) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_port = htons(53);
    if (setsockopt(fd.get(), IPPROTO_IP, IP_PKTINFO, &on, sizeof on) != 0 ||
        bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0) {
      return {};
    }
    return fd;
  }
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  any.sin6_port = htons(53);
  if (setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0 ||
      setsockopt(fd.get(), IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on) != 0 ||
      // An answer's source must be an address of an interface, or this must be set; IPv4 is
      // content with the local route.
      setsockopt(fd.get(), IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof on) != 0 ||
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0) {
    return {};
  }
  return fd;
}

// The helper needs six system calls from here on. seccomp(2).
Result<std::vector<sock_filter>> helper_filter() {
  const FilterAction allow{FilterAction::allow, 0};
  const FilterAction refuse{FilterAction::refuse, EPERM};
  std::vector<FilterRow> rows;
  for (const int number :
       {__NR_recvfrom, __NR_sendmsg, __NR_close, __NR_exit_group, __NR_rt_sigreturn}) {
    rows.push_back({number, allow, {}});
  }
  FilterRow socket_row{__NR_socket, refuse, {}};
  for (const unsigned family : {unsigned{AF_INET}, unsigned{AF_INET6}}) {
    socket_row.rules.push_back({{{0, 0xffffffff, family, false, false},
                                 {1, 0xf, SOCK_DGRAM, false, false},
                                 {2, 0xffffffff, IPPROTO_UDP, false, false}},
                                allow});
  }
  rows.push_back(std::move(socket_row));
  return build_filter(std::move(rows));
}

int give_up_rights(const std::vector<sock_filter>& filter) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const std::array<__user_cap_data_struct, 2> none{};
  if (syscall(SYS_capset, &header, none.data()) != 0) return errno;
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return errno;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  sock_fprog program{static_cast<unsigned short>(filter.size()),
                     const_cast<sock_filter*>(filter.data())};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0 ? 0 : errno;
}

bool tell(int channel, Report report, std::span<const int> fds = {}) {
  std::array<char, sizeof report.step + sizeof report.error> bytes;
  bytes[0] = static_cast<char>(report.step);
  std::memcpy(bytes.data() + 1, &report.error, sizeof report.error);
  return send_fds(channel, fds, std::string_view(bytes.data(), bytes.size())).has_value();
}

Report heard(std::string_view bytes) {
  Report report{Step::confine, EPROTO};
  if (bytes.size() != sizeof report.step + sizeof report.error) return report;
  report.step = static_cast<Step>(bytes[0]);
  std::memcpy(&report.error, bytes.data() + 1, sizeof report.error);
  return report;
}

[[noreturn]] void serve(int channel) {
  for (;;) {
    char request = 0;
    const ssize_t got = recv(channel, &request, 1, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) _exit(0);
    const int family = (request & kRequestV6) != 0 ? AF_INET6 : AF_INET;
    const int flags = (request & kRequestNonBlocking) != 0 ? SOCK_NONBLOCK : 0;
    const int fd = ::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | flags, IPPROTO_UDP);
    const bool told =
        fd >= 0 ? tell(channel, {}, std::span(&fd, 1)) : tell(channel, {Step::done, errno});
    if (fd >= 0) close(fd);
    if (!told) _exit(0);
  }
}

[[noreturn]] void run_helper(int channel, pid_t parent, const std::vector<sock_filter>& filter) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != parent) _exit(0);
  prctl(PR_SET_NAME, "nd7-net", 0, 0, 0);
  // Away from the terminal's signals; what reaches it otherwise waits for ever.
  setsid();
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  // Keep the channel only, as descriptor 0.
  if (channel != 0 && dup2(channel, 0) != 0) _exit(1);
  channel = 0;
  if (syscall(SYS_close_range, 1U, ~0U, 0U) != 0) _exit(1);

  const auto fail_with = [&](Step step, int error) {
    tell(channel, {step, error});
    _exit(1);
  };
  if (const int e = make_namespace(); e != 0) fail_with(Step::make, e);
  if (const int e = lo_up(); e != 0) fail_with(Step::lo_up, e);
  // lo must be up first: ::/0 is ENETDOWN before.
  if (const int e = route_everything_to_lo(AF_INET); e != 0) fail_with(Step::route, e);
  std::vector<int> fds;
  const Fd udp4 = udp_listener(AF_INET);
  if (!udp4) fail_with(Step::listen, errno);
  fds.push_back(udp4.get());
  // A kernel without IPv6 refuses the route or the socket: then there are no IPv6 sockets at all.
  Fd udp6;
  if (route_everything_to_lo(AF_INET6) == 0) udp6 = udp_listener(AF_INET6);
  if (udp6) fds.push_back(udp6.get());
  if (const int e = give_up_rights(filter); e != 0) fail_with(Step::confine, e);
  if (!tell(channel, {}, fds)) _exit(1);
  for (const int fd : fds) close(fd);
  serve(channel);
}

bool sysctl_is(const char* path, char value) {
  const Fd fd(open(path, O_RDONLY | O_CLOEXEC));
  char c = 0;
  return fd && read(fd.get(), &c, 1) == 1 && c == value;
}

// Which switch of this machine stands in the way.
std::unexpected<Error> explain(Report report) {
  const char* what = "";
  switch (report.step) {
  case Step::done:
    what = "network namespace helper";
    break;
  case Step::make:
    what = "make a network namespace";
    break;
  case Step::lo_up:
    what = "bring lo up in a new network namespace";
    break;
  case Step::route:
    what = "route addresses to lo in a new network namespace";
    break;
  case Step::listen:
    what = "listen on port 53 in a new network namespace";
    break;
  case Step::confine:
    what = "confine the network namespace helper";
    break;
  }
  auto failure = os_error(what, report.error);
  Error& error = failure.error();
  const bool refused = report.error == EPERM || report.error == EACCES;
  if (refused && sysctl_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1')) {
    error.text += " (AppArmor restricts user namespaces)";
    error.hint = "load the AppArmor profile that nd7 doctor prints, or: "
                 "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0";
  } else if (refused && sysctl_is("/proc/sys/kernel/unprivileged_userns_clone", '0')) {
    error.text += " (user namespaces are switched off)";
    error.hint = "sudo sysctl -w kernel.unprivileged_userns_clone=1";
  } else if (report.error == ENOSPC || report.error == EUSERS) {
    error.text += " (no namespaces left)";
    error.hint = "sudo sysctl -w user.max_user_namespaces=15000 user.max_net_namespaces=15000";
  } else if (refused && report.step == Step::make) {
    error.text += " (a container's seccomp profile or a chroot forbids it)";
  }
  return failure;
}

} // namespace

Result<std::unique_ptr<ParkedNamespace>> ParkedNamespace::start() {
  const auto filter = helper_filter();
  if (!filter) return std::unexpected(filter.error());
  int sv[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) != 0) {
    return os_error("make a channel to the network namespace helper");
  }
  Fd ours(sv[0]);
  const Fd theirs(sv[1]);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return os_error("fork the network namespace helper");
  if (child == 0) run_helper(theirs.get(), parent, *filter);

  std::unique_ptr<ParkedNamespace> result(new ParkedNamespace);
  result->helper_ = child;
  result->channel_ = std::move(ours);
  setsockopt(result->channel_.get(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerTimeout,
             sizeof kAnswerTimeout);
  auto answer = receive_fds(result->channel_.get());
  if (!answer) return std::unexpected(answer.error());
  if (answer->bytes.empty()) return os_error("network namespace helper", ESRCH);
  const Report report = heard(answer->bytes);
  if (report.step != Step::done || report.error != 0) return explain(report);
  if (answer->fds.empty() || answer->fds.size() > 2)
    return os_error("network namespace helper", EPROTO);
  result->udp4_ = std::move(answer->fds[0]);
  if (answer->fds.size() == 2) result->udp6_ = std::move(answer->fds[1]);
  return result;
}

ParkedNamespace::~ParkedNamespace() {
  channel_.reset();
  if (helper_ <= 0) return;
  // Other children forked meanwhile may hold the channel open; do not wait for them.
  kill(helper_, SIGKILL);
  while (waitpid(helper_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<Fd> ParkedNamespace::socket(int domain, int type, int protocol) {
  if (domain != AF_INET && domain != AF_INET6) return os_error("socket", EAFNOSUPPORT);
  if ((type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) != SOCK_DGRAM)
    return os_error("socket", ESOCKTNOSUPPORT);
  if (protocol != 0 && protocol != IPPROTO_UDP) return os_error("socket", EPROTONOSUPPORT);
  const char request = static_cast<char>((domain == AF_INET6 ? kRequestV6 : 0) |
                                         ((type & SOCK_NONBLOCK) != 0 ? kRequestNonBlocking : 0));
  const std::scoped_lock lock(mutex_);
  if (!channel_) return os_error("network namespace helper", ESRCH);
  auto sent = send_fds(channel_.get(), {}, std::string_view(&request, 1));
  auto answer = sent ? receive_fds(channel_.get()) : std::unexpected(sent.error());
  if (!answer || answer->bytes.empty()) {
    // Dead or late: a late answer would be taken for the next one's, so there is no next one.
    channel_.reset();
    return os_error("network namespace helper", answer ? ESRCH : answer.error().os_errno);
  }
  const Report report = heard(answer->bytes);
  if (report.error != 0) return os_error("socket", report.error);
  if (answer->fds.size() != 1) return os_error("network namespace helper", EPROTO);
  return std::move(answer->fds[0]);
}

} // namespace nd7::os
