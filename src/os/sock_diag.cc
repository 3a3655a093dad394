#include "os/sock_diag.h"

#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>

#include <cstring>
#include <functional>
#include <string>

#include "base/fd.h"
#include "os/netlink.h"

namespace nd7::os {
namespace {

// One socket asked for exactly: ENOENT is the answer "no such socket".
template <class Body>
Result<> ask_one(const Body& body, const std::function<void(const NetlinkMessage&)>& each) {
  auto asked = netlink_ask(NETLINK_SOCK_DIAG, NetlinkRequest(SOCK_DIAG_BY_FAMILY, 0, body), each);
  if (!asked && asked.error().os_errno == ENOENT) return {};
  return asked;
}

void put_address(const Address& address, std::uint32_t (&to)[4]) {
  std::memcpy(to, address.bytes.data(), address.v6 ? 16 : 4);
}

std::optional<TcpSocket> read_tcp(const NetlinkMessage& message) {
  const auto m = message.body<inet_diag_msg>();
  if (!m) return std::nullopt;
  TcpSocket result;
  result.inode = m->idiag_inode;
  result.uid = m->idiag_uid;
  result.state = m->idiag_state;
  result.interface = m->id.idiag_if;
  result.local.v6 = m->idiag_family == AF_INET6;
  std::memcpy(result.local.bytes.data(), m->id.idiag_src, result.local.v6 ? 16 : 4);
  result.local.port = ntohs(m->id.idiag_sport);
  message.attributes(sizeof *m, [&](std::uint16_t type, std::string_view data) {
    if (type == INET_DIAG_SKV6ONLY && !data.empty()) result.v6_only = data.front() != 0;
  });
  return result;
}

inet_diag_req_v2 tcp_request(std::uint8_t family) {
  inet_diag_req_v2 request{};
  request.sdiag_family = family;
  request.sdiag_protocol = IPPROTO_TCP;
  request.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
  request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return request;
}

// The kernel looks up the socket that a segment from `remote` to `local` arriving on `interface`
// would be given to; with no remote that is a listener.
Result<std::optional<TcpSocket>> look_up(const Address& local, const Address* remote,
                                         std::uint32_t interface) {
  inet_diag_req_v2 request = tcp_request(local.v6 ? AF_INET6 : AF_INET);
  request.idiag_states = ~0U;
  put_address(local, request.id.idiag_src);
  request.id.idiag_sport = htons(local.port);
  if (remote != nullptr) {
    put_address(*remote, request.id.idiag_dst);
    request.id.idiag_dport = htons(remote->port);
  }
  request.id.idiag_if = interface;
  std::optional<TcpSocket> found;
  auto asked = ask_one(request, [&](const NetlinkMessage& m) { found = read_tcp(m); });
  if (!asked) return std::unexpected(asked.error());
  return found;
}

bool is_loopback_device(std::uint32_t interface) {
  static const unsigned lo = if_nametoindex("lo");
  return interface == lo;
}

} // namespace

Result<std::optional<TcpSocket>> tcp_listener(const Address& address) {
  Address to = unmapped(address);
  // Linux connects the unspecified address to loopback.
  if (classify(to) == AddressClass::unspecified) {
    if (to.v6)
      to.bytes[15] = 1;
    else
      to = *parse_address("127.0.0.1", to.port);
  }
  auto found = look_up(to, nullptr, if_nametoindex("lo"));
  if (found && *found && (*found)->state != TCP_LISTEN) return std::optional<TcpSocket>();
  return found;
}

Result<std::vector<TcpSocket>> tcp_listeners(std::uint16_t port) {
  std::vector<TcpSocket> result;
  for (const std::uint8_t family : {std::uint8_t{AF_INET}, std::uint8_t{AF_INET6}}) {
    inet_diag_req_v2 request = tcp_request(family);
    request.idiag_states = 1U << TCP_LISTEN;
    request.id.idiag_sport = htons(port);
    auto asked =
        netlink_ask(NETLINK_SOCK_DIAG, NetlinkRequest(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, request),
                    [&](const NetlinkMessage& m) {
                      const auto socket = read_tcp(m);
                      if (socket && socket->local.port == port) result.push_back(*socket);
                    });
    if (!asked) return std::unexpected(asked.error());
  }
  return result;
}

bool accepts(const TcpSocket& listener, const Address& address) {
  if (listener.local.port != address.port) return false;
  if (listener.interface != 0 && !is_loopback_device(listener.interface)) return false;
  const Address to = unmapped(address);
  const Address at = unmapped(listener.local);
  if (classify(at) == AddressClass::unspecified && at.v6 == listener.local.v6) {
    return to.v6 == at.v6 || (at.v6 && !listener.v6_only);
  }
  if (classify(to) == AddressClass::unspecified) return classify(at) == AddressClass::loopback;
  return to == at || classify(at) == AddressClass::unspecified;
}

Result<std::optional<TcpSocket>> tcp_connection(const Address& local, const Address& remote) {
  const Address from = unmapped(local);
  const Address to = unmapped(remote);
  if (from.v6 != to.v6) return os_error("look up a connection", EAFNOSUPPORT);
  auto found = look_up(from, &to, if_nametoindex("lo"));
  // Without the connection the lookup falls through to a listener on the port.
  if (found && *found && (*found)->state == TCP_LISTEN) return std::optional<TcpSocket>();
  return found;
}

bool tcp_diag_works() {
  Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* name = reinterpret_cast<sockaddr*>(&at);
  if (!listener || bind(listener.get(), name, size) != 0 || listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), name, &size) != 0) {
    return false;
  }
  const auto found = tcp_listener(*parse_address("127.0.0.1", ntohs(at.sin_port)));
  return found && *found;
}

Result<std::optional<UnixSocket>> unix_socket(std::uint64_t inode) {
  unix_diag_req request{};
  request.sdiag_family = AF_UNIX;
  request.udiag_states = ~0U;
  request.udiag_ino = static_cast<std::uint32_t>(inode);
  request.udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_VFS;
  request.udiag_cookie[0] = INET_DIAG_NOCOOKIE;
  request.udiag_cookie[1] = INET_DIAG_NOCOOKIE;
  if (inode == 0 || inode > UINT32_MAX) return std::optional<UnixSocket>();
  std::optional<UnixSocket> found;
  auto asked = ask_one(request, [&](const NetlinkMessage& message) {
    const auto m = message.body<unix_diag_msg>();
    if (!m) return;
    UnixSocket socket;
    socket.inode = m->udiag_ino;
    socket.state = m->udiag_state;
    message.attributes(sizeof *m, [&](std::uint16_t type, std::string_view data) {
      if (type == UNIX_DIAG_NAME) {
        // A path name may carry its terminator; an abstract one begins with NUL.
        socket.name = data.starts_with('\0') ? data : data.substr(0, data.find('\0'));
      } else if (type == UNIX_DIAG_VFS && data.size() >= sizeof(unix_diag_vfs)) {
        unix_diag_vfs vfs{};
        std::memcpy(&vfs, data.data(), sizeof vfs);
        // The kernel's own form of a device number: 12 bits major, 20 bits minor.
        socket.bound = ObjectId{makedev(vfs.udiag_vfs_dev >> 20, vfs.udiag_vfs_dev & 0xfffffU),
                                vfs.udiag_vfs_ino};
      }
    });
    found = std::move(socket);
  });
  if (!asked) return std::unexpected(asked.error());
  return found;
}

} // namespace nd7::os
