// socket, socketpair, connect, bind, listen: performed on the caller's own socket, by an address
// copied once. Sockets are told apart by what the kernel says of the descriptor, never by what the
// caller says.
#include <algorithm>
#include <cstring>

#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include "gate/gate.h"
#include "gate/unix_sockets.h"
#include "os/remote.h"
#include "os/sock_diag.h"

namespace nd7 {
namespace {

constexpr unsigned type_mask = 0xf;
constexpr std::uint16_t dns_port = 53;

int socket_option(int fd, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

std::uint64_t inode_of(int fd) {
  struct stat st {};
  return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

Address address_of(const sockaddr_storage& storage) {
  Address out;
  if (storage.ss_family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, &storage, sizeof in);
    out.v6 = true;
    std::memcpy(out.bytes.data(), &in.sin6_addr, 16);
    out.port = ntohs(in.sin6_port);
  } else {
    sockaddr_in in{};
    std::memcpy(&in, &storage, sizeof in);
    std::memcpy(out.bytes.data(), &in.sin_addr, 4);
    out.port = ntohs(in.sin_port);
  }
  return out;
}

Address local_address(int fd) {
  sockaddr_storage local{};
  socklen_t size = sizeof local;
  return getsockname(fd, reinterpret_cast<sockaddr*>(&local), &size) == 0 ? address_of(local)
                                                                          : Address{};
}

struct Copied {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

Result<Copied> copy_address(const Call& call, unsigned index) {
  Copied out;
  const std::uint64_t size = static_cast<std::uint32_t>(call.arg(index + 1));
  if (size > sizeof out.storage) return os_error("address", EINVAL);
  out.size = static_cast<socklen_t>(size);
  if (size > 0)
    if (auto ok = os::read_remote(call.caller.tid, call.arg(index), &out.storage, size); !ok)
      return std::unexpected(ok.error());
  return out;
}

void add_target(JsonWriter& body, const Address& address, const std::string& name) {
  body.text("addr", address_text(address)).number("port", address.port);
  if (name.empty())
    body.null("name");
  else
    body.text("name", name);
}

void record_connect(Context& c, Process& process, const Address& address, const std::string& name,
                    int error, bool by_proxy = false) {
  JsonWriter body = c.recorder.effect(process, "connect", error, "performed");
  add_target(body, address, name);
  body.null("bytes_out").null("bytes_in");
  if (by_proxy) body.text("via", "proxy");
  c.recorder.counts.connects++;
  c.recorder.append(process, "connect", body);
}

Answer refuse_connect(Context& c, Process& process, const Address& address, const std::string& name,
                      const Verdict& verdict) {
  const std::string shown =
      fmt::format("{}{}", name.empty() ? "" : name + " ", endpoint_text(address));
  c.recorder.refuse(process, "connect", "connect", shown, verdict,
                    [&](JsonWriter& body) { add_target(body, address, name); });
  return Answer::error(EACCES);
}

// Performs connect(2) on the caller's socket. A blocking socket is waited for on a pool thread: the
// flag is shared with the caller and must not be touched.
Answer perform_connect(Context& c, Call& call, Fd socket, const Copied& to, const Address& shown,
                       const std::string& name) {
  const bool blocking = (fcntl(socket.get(), F_GETFL) & O_NONBLOCK) == 0;
  auto held = std::make_shared<Fd>(std::move(socket));
  auto run = [&c, held, to, shown, name, tracee = call.tracee]() -> Answer {
    sockaddr_storage storage = to.storage;
    const int error = Pool::run_interruptibly(tracee->tid, [&] {
      return ::connect(held->get(), reinterpret_cast<const sockaddr*>(&storage), to.size);
    });
    // Not a result yet: the connection goes on in the background, as the kernel's own would.
    if (error == EINTR || error == Pool::restart_sys) return Answer::error(error);
    record_connect(c, *tracee->process, shown, name, error);
    return error != 0 ? Answer::error(error) : Answer::value(0);
  };
  if (!blocking) return run();
  return Answer::later(std::move(run));
}

sockaddr_storage loopback_address(int family, std::uint16_t port, socklen_t* size) {
  sockaddr_storage out{};
  if (family == AF_INET6) {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(port);
    in.sin6_addr.s6_addr[10] = in.sin6_addr.s6_addr[11] = 0xff; // ::ffff:127.0.0.1
    in.sin6_addr.s6_addr[12] = 127;
    in.sin6_addr.s6_addr[15] = 1;
    std::memcpy(&out, &in, sizeof in);
    *size = sizeof in;
  } else {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::memcpy(&out, &in, sizeof in);
    *size = sizeof in;
  }
  return out;
}

// Binds the socket to a free port of its own and names it to the service that will accept it.
void admit(Context& c, const std::shared_ptr<Process>& process, int socket, int family) {
  if (local_address(socket).port == 0) {
    socklen_t size = 0;
    const sockaddr_storage local = loopback_address(family, 0, &size);
    if (::bind(socket, reinterpret_cast<const sockaddr*>(&local), size) != 0) return;
  }
  const std::uint16_t port = local_address(socket).port;
  {
    const std::lock_guard hold(c.tables);
    c.loopback_clients[port] = process;
  }
  c.network->admit(port);
}

// Many names share an address; a grant for any of those it was resolved from holds. action.name
// becomes the name that decided, or the latest.
Verdict decide_by_names(Context& c, const Policy& policy, ConnectAction& action) {
  const auto names =
      c.network != nullptr ? c.network->names_of(action.address) : std::vector<std::string>{};
  action.name = names.empty() ? "" : names.front();
  Verdict verdict = decide_connect(policy, action);
  for (std::size_t i = 1; i < names.size() && !verdict.allowed(); ++i) {
    ConnectAction other = action;
    other.name = names[i];
    Verdict by_other = decide_connect(policy, other);
    if (!by_other.allowed()) continue;
    action = std::move(other);
    verdict = std::move(by_other);
  }
  return verdict;
}

Answer connect_tcp(Context& c, Call& call, Fd socket, const Copied& to, int family) {
  const Address address = address_of(to.storage);
  if (c.network != nullptr && address.port == dns_port && c.network->dns_tcp_port() != 0) {
    // Every DNS question is nd7's resolver's, whichever server it is addressed to.
    Copied own;
    own.storage = loopback_address(family, c.network->dns_tcp_port(), &own.size);
    admit(c, call.tracee->process, socket.get(), family);
    return perform_connect(c, call, std::move(socket), own, address, "nd7's resolver");
  }
  const AddressClass where = classify(address);
  const bool local = where == AddressClass::loopback || where == AddressClass::unspecified;
  if (local && c.network != nullptr && c.network->proxy_port() != 0 &&
      address.port == c.network->proxy_port()) {
    admit(c, call.tracee->process, socket.get(), family);
    return perform_connect(c, call, std::move(socket), to, address, "nd7's proxy");
  }
  ConnectAction action;
  action.address = unmapped(address); // a grant for an IPv4 address holds for a dual-stack socket
  if (local) {
    auto listener = os::tcp_listener(address);
    // Nobody listens: the kernel's own word, on which programs live.
    if (listener && !*listener && os::tcp_diag_works()) return Answer::error(ECONNREFUSED);
    if (listener && *listener) {
      const std::lock_guard hold(c.tables);
      action.own_listener = c.listeners.contains((*listener)->inode);
    }
  } else {
    action.local_machine = c.network == nullptr || c.network->local_machine(address);
  }
  const Verdict verdict = decide_by_names(c, *call.policy, action);
  if (!verdict.allowed()) return refuse_connect(c, call.process(), address, action.name, verdict);
  return perform_connect(c, call, std::move(socket), to, address, action.name);
}

// A UDP socket: parked ones reach only the resolver, wherever they are aimed at; anything else that
// is no stream does not exist inside.
Answer connect_parked(Call&, Fd socket, const Copied& to) {
  return Answer::of(
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.size));
}

std::string family_name(unsigned domain) {
  switch (domain) {
  case AF_UNIX:
    return "unix datagram";
  case AF_INET:
  case AF_INET6:
    return "UDP";
  case AF_NETLINK:
    return "netlink";
  case AF_PACKET:
    return "packet";
  case AF_VSOCK:
    return "vsock";
  case AF_ALG:
    return "kernel crypto";
  default:
    return fmt::format("family {}", domain);
  }
}

} // namespace

Answer socket_call(Context& c, Worker&, Call& call) {
  const unsigned domain = call.word(0), type = call.word(1) & type_mask, protocol = call.word(2);
  const bool internet = domain == AF_INET || domain == AF_INET6;
  if (internet && type == SOCK_DGRAM && (protocol == 0 || protocol == IPPROTO_UDP) &&
      c.network != nullptr && c.network->parked()) {
    auto fd = c.network->park_socket(static_cast<int>(domain), static_cast<int>(call.word(1)),
                                     static_cast<int>(protocol));
    if (fd) return Answer::descriptor(std::move(*fd), (call.word(1) & SOCK_CLOEXEC) != 0);
  }
  const std::string name = internet && type != SOCK_DGRAM ? "raw" : family_name(domain);
  std::string why = fmt::format("network: {} sockets do not exist inside", name);
  if (internet && type == SOCK_DGRAM && protocol != 0 && protocol != IPPROTO_UDP)
    why = "network: ICMP and the like do not exist inside";
  else if (internet && type == SOCK_DGRAM && c.network != nullptr)
    why += "; " + c.network->why_not();
  c.recorder.refuse(
      call.process(), call.name(), "connect", name + " socket",
      {Decision::deny, why, {}, Judge::none},
      [&](JsonWriter& body) {
        body.number("family", domain).number("type", type).number("protocol", protocol);
      },
      // syslog and friends try at every start
      domain == AF_UNIX ? Telling::none : Telling::person);
  if (internet) return Answer::error(type == SOCK_RAW ? EPERM : EACCES);
  return Answer::error(domain == AF_UNIX ? EACCES : EAFNOSUPPORT);
}

// A pair of unix datagram sockets could send to any path (the address lies in memory): the pair is
// made of SEQPACKET, which keeps message boundaries and has one peer only.
Answer socketpair_call(Context& c, Worker&, Call& call) {
  if (call.word(0) != AF_UNIX || (call.word(1) & type_mask) != SOCK_DGRAM)
    return Answer::error(EAFNOSUPPORT);
  int pair[2];
  const unsigned flags = call.word(1) & (SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (::socketpair(AF_UNIX, static_cast<int>(SOCK_SEQPACKET | flags | SOCK_CLOEXEC), 0, pair) != 0)
    return Answer::error(errno);
  const Fd first(pair[0]), second(pair[1]);
  const std::uint64_t id = call.notification.id;
  const bool close_on_exec = (flags & SOCK_CLOEXEC) != 0;
  const int one = c.listener.add_fd(id, first.get(), close_on_exec);
  if (one < 0) return Answer::error(errno);
  const int two = c.listener.add_fd(id, second.get(), close_on_exec);
  if (two < 0) return Answer::error(errno);
  const int numbers[2] = {one, two};
  if (auto ok = os::write_remote(call.caller.tid, call.arg(3), numbers, sizeof numbers); !ok)
    return Answer::error(EFAULT);
  return Answer::value(0);
}

Answer connect_call(Context& c, Worker& w, Call& call) {
  auto socket = os::take_fd(call.caller.pidfd, call.fd(0));
  if (!socket) return Answer::error(errno_of(socket.error()));
  const int domain = socket_option(socket->get(), SO_DOMAIN);
  const int type = socket_option(socket->get(), SO_TYPE);
  if (domain < 0) return Answer::error(ENOTSOCK);
  auto to = copy_address(call, 1);
  if (!to) return Answer::error(errno_of(to.error()));
  if (to->size < sizeof(sa_family_t)) return Answer::error(EINVAL);
  const int family = to->storage.ss_family;
  if (domain == AF_UNIX) return connect_unix(c, w, call, std::move(*socket), to->storage, to->size);
  if (domain == AF_NETLINK || family == AF_UNSPEC || (domain != AF_INET && domain != AF_INET6))
    // AF_UNSPEC dissolves an association; netlink speaks to the kernel only.
    return Answer::of(
        ::connect(socket->get(), reinterpret_cast<const sockaddr*>(&to->storage), to->size));
  if (type != SOCK_STREAM) return connect_parked(call, std::move(*socket), *to);
  if (family != AF_INET && family != AF_INET6) return Answer::error(EAFNOSUPPORT);
  if (to->size < (family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6)) -
                     (family == AF_INET6 ? 4 : 0))
    return Answer::error(EINVAL);
  if (socket_option(socket->get(), SO_PROTOCOL) != IPPROTO_TCP)
    return Answer::error(EPROTONOSUPPORT);
  return connect_tcp(c, call, std::move(*socket), *to, domain);
}

std::string proxy_connect(Context& c, const Address& address, const std::string& name,
                          std::uint16_t from_port) {
  std::shared_ptr<Process> client;
  {
    const std::lock_guard hold(c.tables);
    if (const auto at = c.loopback_clients.find(from_port); at != c.loopback_clients.end())
      client = at->second.lock();
  }
  if (!client) return "the program that asked is gone";
  ConnectAction action;
  action.address = unmapped(address);
  action.name = name;
  action.local_machine = c.network->local_machine(address);
  const auto policy = c.policy.now();
  // The name asked for is the proxy's own word; only for an address alone is it looked up.
  const Verdict verdict =
      name.empty() ? decide_by_names(c, *policy, action) : decide_connect(*policy, action);
  if (!verdict.allowed()) {
    refuse_connect(c, *client, address, action.name, verdict);
    return verdict.rule;
  }
  // On its way, as the caller of a connect that does not block would hear.
  record_connect(c, *client, address, action.name, EINPROGRESS, true);
  return {};
}

namespace {

bool v6_only(int fd) {
  int value = 0;
  socklen_t size = sizeof value;
  return getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &value, &size) == 0 && value != 0;
}

// Does a program outside listen where a server at `ours` would? With SO_REUSEPORT a process of the
// same user joins such a port; without it the kernel refuses.
bool is_taken(Context& c, const Address& ours, bool ours_v6_only) {
  const auto others = os::tcp_listeners(ours.port);
  if (!others) return true;
  const bool everywhere = classify(ours) == AddressClass::unspecified;
  const std::lock_guard hold(c.tables);
  return std::any_of(others->begin(), others->end(), [&](const os::TcpSocket& other) {
    if (c.listeners.contains(other.inode)) return false;
    if (!everywhere) return os::accepts(other, ours);
    const bool other_v6 = unmapped(other.local).v6;
    if (other_v6 == ours.v6) return true;
    // Across families only where one of them takes both.
    return ours.v6 ? !ours_v6_only
                   : classify(other.local) == AddressClass::unspecified && !other.v6_only;
  });
}

Answer refuse_taken(Context& c, Call& call, const Address& address) {
  c.recorder.refuse(
      call.process(), call.name(), "listen", fmt::format("port {}", address.port),
      {Decision::deny, "network: another program listens on this port", {}, Judge::none},
      [&](JsonWriter& body) {
        body.text("addr", address_text(address)).number("port", address.port);
      });
  return Answer::error(EADDRINUSE);
}

} // namespace

Answer bind_call(Context& c, Worker& w, Call& call) {
  auto socket = os::take_fd(call.caller.pidfd, call.fd(0));
  if (!socket) return Answer::error(errno_of(socket.error()));
  const int domain = socket_option(socket->get(), SO_DOMAIN);
  if (domain < 0) return Answer::error(ENOTSOCK);
  auto to = copy_address(call, 1);
  if (!to) return Answer::error(errno_of(to.error()));
  if (to->size < sizeof(sa_family_t)) return Answer::error(EINVAL);
  if (domain == AF_UNIX) return bind_unix(c, w, call, std::move(*socket), to->storage, to->size);
  if ((domain == AF_INET || domain == AF_INET6) &&
      socket_option(socket->get(), SO_TYPE) == SOCK_STREAM && to->size >= 8) {
    const Address address = address_of(to->storage);
    // The kernel itself refuses the others.
    if (address.port != 0 && socket_option(socket->get(), SO_REUSEPORT) == 1 &&
        is_taken(c, address, v6_only(socket->get())))
      return refuse_taken(c, call, address);
  }
  return Answer::of(
      ::bind(socket->get(), reinterpret_cast<const sockaddr*>(&to->storage), to->size));
}

Answer listen_call(Context& c, Worker&, Call& call) {
  auto socket = os::take_fd(call.caller.pidfd, call.fd(0));
  if (!socket) return Answer::error(errno_of(socket.error()));
  const int domain = socket_option(socket->get(), SO_DOMAIN);
  if (domain < 0) return Answer::error(ENOTSOCK);
  const int backlog = static_cast<int>(call.word(1));
  if (domain != AF_INET && domain != AF_INET6) return Answer::of(::listen(socket->get(), backlog));
  Address address = local_address(socket->get());
  if (address.port == 0) {
    // An unbound listen gets a port on every address. IPv4: bound to loopback first; IPv6 stays
    // wildcard, so that ::1 and 127.0.0.1 both lead there, and is tied to the device below.
    socklen_t size = 0;
    sockaddr_storage any{};
    if (domain == AF_INET) {
      any = loopback_address(domain, 0, &size);
    } else {
      any.ss_family = AF_INET6;
      size = sizeof(sockaddr_in6);
    }
    if (::bind(socket->get(), reinterpret_cast<const sockaddr*>(&any), size) != 0)
      return Answer::error(errno);
    address = local_address(socket->get());
  }
  const auto refuse = [&](const Verdict& verdict) {
    c.recorder.refuse(call.process(), call.name(), "listen",
                      fmt::format("{}:{}", address_text(address), address.port), verdict,
                      [&](JsonWriter& body) {
                        body.text("addr", address_text(address)).number("port", address.port);
                      });
    return Answer::error(EACCES);
  };
  // Here the address is settled; at bind another thread may set SO_REUSEPORT behind our look.
  if (is_taken(c, address, v6_only(socket->get()))) return refuse_taken(c, call, address);
  const Verdict verdict = decide_listen(*call.policy, address);
  const bool loopback = classify(address) == AddressClass::loopback;
  if (loopback || !verdict.allowed()) {
    // The address stays as asked; the loopback device keeps everybody else out. One on loopback is
    // tied as well: a disconnect at this moment (AF_UNSPEC) would make its address a wildcard.
    const char device[IFNAMSIZ] = "lo";
    if (setsockopt(socket->get(), SOL_SOCKET, SO_BINDTODEVICE, device, sizeof device) != 0)
      return refuse(loopback
                        ? Verdict{Decision::deny,
                                  "network: the socket is tied to a device other than loopback",
                                  {},
                                  Judge::none}
                        : verdict);
  }
  {
    const std::lock_guard hold(c.tables);
    c.listeners.insert(inode_of(socket->get()));
  }
  const int result = ::listen(socket->get(), backlog);
  const int error = result < 0 ? errno : 0;
  if (error == 0 && !loopback && verdict.allowed() &&
      !decide_listen(*call.policy, local_address(socket->get())).allowed()) {
    // The address that was granted is not the one it listens on: it was disconnected meanwhile.
    ::shutdown(socket->get(), SHUT_RDWR);
    return refuse({Decision::deny,
                   "network: the address was changed while it began to listen",
                   {},
                   Judge::none});
  }
  JsonWriter body = c.recorder.effect(call.process(), call.name(), error, "performed");
  body.text("addr", address_text(address)).number("port", address.port);
  c.recorder.append(call.process(), "listen", body);
  return error != 0 ? Answer::error(error) : Answer::value(0);
}

} // namespace nd7
