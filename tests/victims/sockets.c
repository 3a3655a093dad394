/* Sockets to anything outside, families that have no use inside, and listening to the world. */
#define _GNU_SOURCE
#include "victim.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNREACHABLE "EACCES EPERM"

/* --- families and protocols ----------------------------------------------------------------- */
static int family(int domain, int type, int protocol) {
  return outcome(socket(domain, type, protocol));
}
static int vsock(void) {
  return family(40, SOCK_STREAM, 0);
}
static int alg(void) {
  return family(38, SOCK_SEQPACKET, 0);
}
static int packet(void) {
  return family(AF_PACKET, SOCK_RAW, 0);
}
static int raw(void) {
  return family(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}
static int ping(void) {
  return family(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
}
static int mptcp(void) {
  return family(AF_INET, SOCK_STREAM, 262);
}
static int mptcp6(void) {
  return family(AF_INET6, SOCK_STREAM, 262);
}
static int sctp(void) {
  return family(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
}
static int udplite(void) {
  return family(AF_INET, SOCK_DGRAM, 136);
}
static int smc(void) {
  return family(43, SOCK_STREAM, 0);
}
static int xdp(void) {
  return family(44, SOCK_RAW, 0);
}
static int bluetooth(void) {
  return family(31, SOCK_RAW, 1);
}
static int key_family(void) {
  return family(15, SOCK_RAW, 2);
}
static int can(void) {
  return family(29, SOCK_RAW, 1);
}
static int netlink_diag(void) {
  return family(AF_NETLINK, SOCK_RAW, 4);
}
static int netlink_audit(void) {
  return family(AF_NETLINK, SOCK_RAW, 9);
}
static int netlink_uevent(void) {
  return family(AF_NETLINK, SOCK_DGRAM, 15);
}
static int netlink_generic(void) {
  return family(AF_NETLINK, SOCK_RAW, 16);
}
static int netlink_xfrm(void) {
  return family(AF_NETLINK, SOCK_RAW, 6);
}

/* --- unix sockets ----------------------------------------------------------------------------- */
static socklen_t unix_address(struct sockaddr_un* to, const char* path) {
  memset(to, 0, sizeof *to);
  to->sun_family = AF_UNIX;
  if (strlen(path) >= sizeof to->sun_path) {
    errno = ENAMETOOLONG;
    exit(could_not(path));
  }
  strcpy(to->sun_path, path);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1);
}
static int connect_unix(const char* path) {
  struct sockaddr_un to;
  const socklen_t length = unix_address(&to, path);
  return outcome(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr*)&to, length));
}
static int unix_absolute(void) {
  return connect_unix(in_world("sock"));
}
static int unix_chdir(void) {
  if (chdir(world) != 0) return could_not("chdir");
  return connect_unix("sock");
}
static int unix_link(void) {
  if (symlink(in_world("sock"), "s") != 0) return could_not("symlink");
  return connect_unix("s");
}
static int unix_directory_link(void) {
  if (symlink(world, "w") != 0) return could_not("symlink");
  return connect_unix("w/./sock");
}
static int unix_own_fd(void) {
  const int fd = open(world, O_PATH);
  return connect_unix(format("/proc/self/fd/%d/sock", fd));
}
static int unix_at_fd(void) {
  const int fd = open(in_world("sock"), O_PATH);
  return connect_unix(format("/proc/self/fd/%d", fd));
}
static int unix_hard_link(void) {
  if (link(in_world("sock"), "s") != 0) return says_refused(errno);
  return connect_unix("s");
}
static int unix_rename(void) {
  if (rename(in_world("sock"), "s") != 0) return says_refused(errno);
  return connect_unix("s");
}
/* A name with no zero at its end: the kernel takes the length. */
static int unix_unterminated(void) {
  struct sockaddr_un to;
  const socklen_t length = unix_address(&to, in_world("sock"));
  return outcome(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr*)&to, length - 1));
}
static int unix_nonblocking(void) {
  struct sockaddr_un to;
  const socklen_t length = unix_address(&to, in_world("sock"));
  return outcome(connect(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
                         (struct sockaddr*)&to, length));
}
static int abstract(void) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  const char* name = fact("abstract");
  strcpy(to.sun_path + 1, name);
  return outcome(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr*)&to,
                         (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))));
}
/* Datagrams: what counts is whether one arrives. */
static int dgram_socket(void) {
  const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  if (fd < 0) return says_refused(errno);
  struct sockaddr_un to;
  const socklen_t length = unix_address(&to, in_world("dgram"));
  const ssize_t n = sendto(fd, "socket", 6, 0, (struct sockaddr*)&to, length);
  const int error = errno;
  return event_came("dgram-socket") ? worked : says_refused(n < 0 ? error : EPERM);
}
static int dgram_pair(void) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0) return says_refused(errno);
  struct sockaddr_un to;
  const socklen_t length = unix_address(&to, in_world("dgram"));
  const ssize_t n = sendto(pair[0], "pair", 4, 0, (struct sockaddr*)&to, length);
  const int error = errno;
  return event_came("dgram-pair") ? worked : says_refused(n < 0 ? error : EPERM);
}
static int dgram_pair_message(void) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0) return says_refused(errno);
  struct sockaddr_un to;
  struct iovec data = {"message", 7};
  struct mmsghdr m = {.msg_hdr = {.msg_name = &to, .msg_iov = &data, .msg_iovlen = 1}};
  m.msg_hdr.msg_namelen = unix_address(&to, in_world("dgram"));
  const int n = sendmmsg(pair[0], &m, 1, 0);
  const int error = errno;
  return event_came("dgram-message") ? worked : says_refused(n < 0 ? error : EPERM);
}
static int dgram_connect(void) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0) return says_refused(errno);
  struct sockaddr_un to;
  const socklen_t length = unix_address(&to, in_world("dgram"));
  if (connect(pair[0], (struct sockaddr*)&to, length) != 0) return says_refused(errno);
  if (write(pair[0], "connect", 7) < 0) return says_refused(errno);
  return event_came("dgram-connect") ? worked : says_refused(EPERM);
}

/* --- TCP and UDP --------------------------------------------------------------------------------
 */
static struct sockaddr_in local(const char* port) {
  return (struct sockaddr_in){.sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                              .sin_port = htons((uint16_t)fact_number(port))};
}
static int tcp(void) {
  const struct sockaddr_in to = local("tcp");
  return outcome(connect(socket(AF_INET, SOCK_STREAM, 0), (const struct sockaddr*)&to, sizeof to));
}
static int tcp_mapped(void) { /* the same place written as an IPv6 address */
  struct sockaddr_in6 to = {.sin6_family = AF_INET6,
                            .sin6_port = htons((uint16_t)fact_number("tcp"))};
  inet_pton(AF_INET6, "::ffff:127.0.0.1", &to.sin6_addr);
  return outcome(connect(socket(AF_INET6, SOCK_STREAM, 0), (struct sockaddr*)&to, sizeof to));
}
static int tcp_zero(void) { /* 0.0.0.0 is this machine too */
  struct sockaddr_in to = local("tcp");
  to.sin_addr.s_addr = 0;
  return outcome(connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr*)&to, sizeof to));
}
static int tcp_other_loopback(void) { /* nobody listens there */
  struct sockaddr_in to = local("tcp");
  to.sin_addr.s_addr = htonl(0x7f010203);
  return outcome(connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr*)&to, sizeof to));
}
static int tcp6(void) {
  if (fact_number("tcp6") == 0) return could_not("no IPv6");
  struct sockaddr_in6 to = {.sin6_family = AF_INET6,
                            .sin6_addr = IN6ADDR_LOOPBACK_INIT,
                            .sin6_port = htons((uint16_t)fact_number("tcp6"))};
  return outcome(connect(socket(AF_INET6, SOCK_STREAM, 0), (struct sockaddr*)&to, sizeof to));
}
static int tcp_nonblocking(void) {
  const struct sockaddr_in to = local("tcp");
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (connect(fd, (const struct sockaddr*)&to, sizeof to) == 0 || errno == EINPROGRESS)
    return worked;
  return says_refused(errno);
}
static int fastopen_connect(void) { /* TCP_FASTOPEN_CONNECT: connect() only remembers the place */
  const struct sockaddr_in to = local("tcp");
  const int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  if (setsockopt(fd, IPPROTO_TCP, 30, &one, sizeof one) != 0) return could_not("setsockopt");
  if (connect(fd, (const struct sockaddr*)&to, sizeof to) != 0) return says_refused(errno);
  return outcome(write(fd, "x", 1));
}
static int fastopen_sendto(void) {
  const struct sockaddr_in to = local("tcp");
  return outcome(sendto(socket(AF_INET, SOCK_STREAM, 0), "x", 1, MSG_FASTOPEN,
                        (const struct sockaddr*)&to, sizeof to));
}
static int fastopen_sendto_high_bits(void) {
  const struct sockaddr_in to = local("tcp");
  return outcome(syscall(SYS_sendto, socket(AF_INET, SOCK_STREAM, 0), "x", 1UL,
                         0x100000000UL | MSG_FASTOPEN, &to, sizeof to));
}
static struct mmsghdr message(struct sockaddr_in* to, struct iovec* data) {
  return (struct mmsghdr){
      .msg_hdr = {.msg_name = to, .msg_namelen = sizeof *to, .msg_iov = data, .msg_iovlen = 1}};
}
static int fastopen_sendmsg(void) {
  struct sockaddr_in to = local("tcp");
  struct iovec data = {"x", 1};
  const struct mmsghdr m = message(&to, &data);
  return outcome(sendmsg(socket(AF_INET, SOCK_STREAM, 0), &m.msg_hdr, MSG_FASTOPEN));
}
static int fastopen_sendmmsg(void) {
  struct sockaddr_in to = local("tcp");
  struct iovec data = {"x", 1};
  struct mmsghdr m = message(&to, &data);
  return outcome(sendmmsg(socket(AF_INET, SOCK_STREAM, 0), &m, 1, MSG_FASTOPEN));
}
static int udp_arrived(const char* word, long result) {
  const int error = errno;
  if (event_came(format("udp-%s", word))) return worked;
  return says_refused(result < 0 ? error : EPERM);
}
static int udp_sendto(void) {
  const struct sockaddr_in to = local("udp");
  return udp_arrived("sendto", sendto(socket(AF_INET, SOCK_DGRAM, 0), "sendto", 6, 0,
                                      (const struct sockaddr*)&to, sizeof to));
}
static int udp_connect(void) {
  const struct sockaddr_in to = local("udp");
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  const int result = connect(fd, (const struct sockaddr*)&to, sizeof to);
  return udp_arrived("connect", result != 0 ? result : write(fd, "connect", 7));
}
static int udp_sendmsg(void) {
  struct sockaddr_in to = local("udp");
  struct iovec data = {"sendmsg", 7};
  const struct mmsghdr m = message(&to, &data);
  return udp_arrived("sendmsg", sendmsg(socket(AF_INET, SOCK_DGRAM, 0), &m.msg_hdr, 0));
}
static int udp_sendmmsg(void) {
  struct sockaddr_in to = local("udp");
  struct iovec data = {"sendmmsg", 8};
  struct mmsghdr m = message(&to, &data);
  return udp_arrived("sendmmsg", sendmmsg(socket(AF_INET, SOCK_DGRAM, 0), &m, 1, 0));
}
static int udp_mapped(void) {
  struct sockaddr_in6 to = {.sin6_family = AF_INET6,
                            .sin6_port = htons((uint16_t)fact_number("udp"))};
  inet_pton(AF_INET6, "::ffff:127.0.0.1", &to.sin6_addr);
  return udp_arrived("mapped", sendto(socket(AF_INET6, SOCK_DGRAM, 0), "mapped", 6, 0,
                                      (struct sockaddr*)&to, sizeof to));
}

/* --- listening
 * ------------------------------------------------------------------------------------ */
static int join_port(void) {
  const struct sockaddr_in at = local("tcp");
  const int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
  if (bind(fd, (const struct sockaddr*)&at, sizeof at) != 0) return says_refused(errno);
  return outcome(listen(fd, 1));
}

/* Listens, then says whether the socket is tied to the loopback device. */
static int open_to_the_world(int fd) {
  if (listen(fd, 1) != 0) return says_refused(errno);
  char device[16] = "";
  socklen_t length = sizeof device;
  getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, &length);
  if (strcmp(device, "lo") == 0) return says_refused(EPERM);
  union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
  } at = {0};
  length = sizeof at;
  getsockname(fd, &at.any, &length);
  if (at.any.sa_family == AF_INET && (ntohl(at.v4.sin_addr.s_addr) >> 24) == 127)
    return says_refused(EPERM);
  const struct in6_addr* six = &at.v6.sin6_addr;
  if (at.any.sa_family == AF_INET6 &&
      (IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127)))
    return says_refused(EPERM);
  return worked;
}
static int listen_unbound(void) {
  return open_to_the_world(socket(AF_INET, SOCK_STREAM, 0));
}
static int listen_unbound6(void) {
  return open_to_the_world(socket(AF_INET6, SOCK_STREAM, 0));
}
static int listen_wildcard(void) {
  const struct sockaddr_in at = {.sin_family = AF_INET};
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(fd, (const struct sockaddr*)&at, sizeof at) != 0) return says_refused(errno);
  return open_to_the_world(fd);
}
static int listen_address(void) {
  const struct sockaddr_in at = {.sin_family = AF_INET,
                                 .sin_addr.s_addr = inet_addr(fact("address"))};
  errno = 0;
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(fd, (const struct sockaddr*)&at, sizeof at) != 0) return says_refused(errno);
  return open_to_the_world(fd);
}
/* The tie must not be taken off again, nor put elsewhere before. */
static int listen_untied(void) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (listen(fd, 1) != 0) return says_refused(errno);
  if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "", 0) != 0) return says_refused(errno);
  return open_to_the_world(fd);
}
/* Bound by one process, listening by a copy of the descriptor in another. */
static int listen_in_child(void) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const pid_t pid = fork();
  if (pid == 0) {
    fclose(stdout);
    _exit(open_to_the_world(fd));
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WEXITSTATUS(status) == worked ? worked : says_refused(EPERM);
}

const struct victim socket_victims[] = {
    {"vsock", "socket", "EAFNOSUPPORT EACCES EPERM", 0, vsock},
    {"alg", "socket", "EAFNOSUPPORT EACCES EPERM", 0, alg},
    {"packet", "socket", "EAFNOSUPPORT EACCES EPERM", needs_root, packet},
    {"raw", "socket", "EACCES EPERM EPROTONOSUPPORT", needs_root, raw},
    {"ping", "socket", "EACCES EPERM EPROTONOSUPPORT", not_native, ping},
    {"mptcp", "socket", "EPROTONOSUPPORT", by_filter, mptcp},
    {"mptcp6", "socket", "EPROTONOSUPPORT", by_filter, mptcp6},
    {"sctp", "socket", "EPROTONOSUPPORT EACCES EPERM ESOCKTNOSUPPORT", not_native, sctp},
    {"udplite", "socket", "EPROTONOSUPPORT EACCES EPERM", not_native, udplite},
    {"smc", "socket", "EAFNOSUPPORT EACCES EPERM", not_native, smc},
    {"xdp", "socket", "EAFNOSUPPORT EACCES EPERM", not_native, xdp},
    {"bluetooth", "socket", "EAFNOSUPPORT EACCES EPERM", not_native, bluetooth},
    {"key", "socket", "EAFNOSUPPORT EACCES EPERM", not_native, key_family},
    {"can", "socket", "EAFNOSUPPORT EACCES EPERM", not_native, can},
    {"netlink-diag", "socket", "EAFNOSUPPORT EPROTONOSUPPORT EACCES EPERM", 0, netlink_diag},
    {"netlink-audit", "socket", "EAFNOSUPPORT EPROTONOSUPPORT EACCES EPERM", not_native,
     netlink_audit},
    {"netlink-uevent", "socket", "EAFNOSUPPORT EPROTONOSUPPORT EACCES EPERM", 0, netlink_uevent},
    {"netlink-generic", "socket", "EAFNOSUPPORT EPROTONOSUPPORT EACCES EPERM", 0, netlink_generic},
    {"netlink-xfrm", "socket", "EAFNOSUPPORT EPROTONOSUPPORT EACCES EPERM", not_native,
     netlink_xfrm},
    {"unix-absolute", "connect", "EACCES", by_gate, unix_absolute},
    {"unix-chdir", "connect", "EACCES", by_gate, unix_chdir},
    {"unix-link", "connect", "EACCES", by_gate, unix_link},
    {"unix-directory-link", "connect", "EACCES", by_gate, unix_directory_link},
    {"unix-own-fd", "connect", "EACCES", by_gate, unix_own_fd},
    {"unix-at-fd", "connect", "EACCES", by_gate, unix_at_fd},
    {"unix-hard-link", "connect link", "EACCES", by_gate, unix_hard_link},
    {"unix-rename", "connect rename", "EACCES", by_gate, unix_rename},
    {"unix-unterminated", "connect", "EACCES", by_gate, unix_unterminated},
    {"unix-nonblocking", "connect", "EACCES", by_gate, unix_nonblocking},
    {"abstract", "connect", UNREACHABLE, by_gate, abstract},
    {"dgram-socket", "socket sendto", "EACCES EPERM EPROTONOSUPPORT EAFNOSUPPORT ESOCKTNOSUPPORT",
     quiet, dgram_socket},
    {"dgram-pair", "socketpair sendto",
     "EACCES EPERM EPROTONOSUPPORT EISCONN EOPNOTSUPP ESOCKTNOSUPPORT", quiet, dgram_pair},
    {"dgram-pair-message", "socketpair sendmmsg",
     "EACCES EPERM EPROTONOSUPPORT EISCONN EOPNOTSUPP ESOCKTNOSUPPORT", quiet, dgram_pair_message},
    {"dgram-connect", "socketpair connect",
     "EACCES EPERM EPROTONOSUPPORT EISCONN EPROTOTYPE ESOCKTNOSUPPORT EINVAL", quiet,
     dgram_connect},
    {"tcp", "connect", "EACCES", by_gate, tcp},
    {"tcp-mapped", "connect", "EACCES", by_gate, tcp_mapped},
    {"tcp-zero", "connect", "EACCES", by_gate, tcp_zero},
    {"tcp-other-loopback", "connect", "EACCES ECONNREFUSED", not_native, tcp_other_loopback},
    {"tcp6", "connect", "EACCES", by_gate, tcp6},
    {"tcp-nonblocking", "connect", "EACCES", by_gate, tcp_nonblocking},
    {"fastopen-connect", "connect", "EACCES", 0, fastopen_connect},
    {"fastopen-sendto", "sendto", "EOPNOTSUPP", by_filter, fastopen_sendto},
    {"fastopen-high-bits", "sendto", "EOPNOTSUPP", by_filter, fastopen_sendto_high_bits},
    {"fastopen-sendmsg", "sendmsg", "EOPNOTSUPP", by_filter, fastopen_sendmsg},
    {"fastopen-sendmmsg", "sendmmsg", "EOPNOTSUPP", by_filter, fastopen_sendmmsg},
    {"udp-sendto", "sendto", "EACCES EPERM ENETUNREACH ECONNREFUSED", quiet, udp_sendto},
    {"udp-connect", "connect", "EACCES EPERM ENETUNREACH ECONNREFUSED", quiet, udp_connect},
    {"udp-sendmsg", "sendmsg", "EACCES EPERM ENETUNREACH ECONNREFUSED", quiet, udp_sendmsg},
    {"udp-sendmmsg", "sendmmsg", "EACCES EPERM ENETUNREACH ECONNREFUSED", quiet, udp_sendmmsg},
    {"udp-mapped", "sendto", "EACCES EPERM ENETUNREACH ECONNREFUSED EAFNOSUPPORT", quiet,
     udp_mapped},
    {"join-port", "bind", "EACCES EADDRINUSE", by_gate, join_port},
    {"listen-unbound", "listen", "EPERM EACCES", quiet, listen_unbound},
    {"listen-unbound6", "listen", "EPERM EACCES", quiet, listen_unbound6},
    {"listen-wildcard", "bind listen", "EPERM EACCES", quiet, listen_wildcard},
    {"listen-address", "bind listen", "EPERM EACCES", quiet, listen_address},
    {"listen-untied", "listen", "EPERM EACCES", quiet, listen_untied},
    {"listen-in-child", "listen", "EPERM EACCES", quiet, listen_in_child},
    {0},
};
