// Who holds a socket: NETLINK_SOCK_DIAG asked for one socket or one port, never the whole table
// (/proc/net/tcp costs milliseconds, the kernel walks all its buckets for it).
//
// Answers are snapshots of the caller's network namespace. Needs no rights, but the kernel's
// tcp_diag and unix_diag; where these are missing every answer is "no such socket", which makes
// the gate refuse. tcp_diag_works() tells, for doctor.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "core/action.h"
#include "core/address.h"

namespace nd7::os {

struct TcpSocket {
  std::uint64_t inode = 0;
  std::uint32_t uid = 0;       // of the socket's creator
  std::uint8_t state = 0;      // TCP_LISTEN, TCP_ESTABLISHED, ... of <netinet/tcp.h>
  bool v6_only = false;        // an AF_INET6 socket that takes no IPv4
  std::uint32_t interface = 0; // bound to this device, 0: none
  Address local;               // port included; wildcard listeners have the unspecified address
};

// The listener that a connection from this machine to `address` would reach, chosen by the kernel's
// own lookup (exact before wildcard, dual-stack sockets, sockets tied to lo). Of a SO_REUSEPORT
// group it is one member; ask tcp_listeners() for all.
Result<std::optional<TcpSocket>> tcp_listener(const Address& address);
// Every listener with this local port, IPv4 and IPv6, any address.
Result<std::vector<TcpSocket>> tcp_listeners(std::uint16_t port);
// True when a listener from the list would accept a connection to `address`.
bool accepts(const TcpSocket& listener, const Address& address);
// The end of an established connection on this machine, named by both its addresses.
Result<std::optional<TcpSocket>> tcp_connection(const Address& local, const Address& remote);

// Finds a listener that it makes itself.
bool tcp_diag_works();

struct UnixSocket {
  std::uint64_t inode = 0;
  std::uint8_t state = 0;        // TCP_LISTEN or TCP_ESTABLISHED or TCP_CLOSE
  std::optional<ObjectId> bound; // the file it is bound to, as lstat shows it (not on btrfs,
                                 // whose st_dev differs from the file system's device)
  std::string name;              // as bound; abstract names begin with NUL
};
// By the inode that fstat shows for a descriptor of the socket.
Result<std::optional<UnixSocket>> unix_socket(std::uint64_t inode);

} // namespace nd7::os
