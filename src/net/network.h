// The session's way out: parked UDP sockets, the resolver, and the lesser way without namespaces.
//
// start() is called by the supervisor before it makes threads: it forks a helper that makes a user
// and network namespace, brings lo up, routes every address to it, opens UDP listeners on port 53
// there and hands descriptors over. UDP sockets asked for by the session are made by the helper and
// keep that namespace wherever they are used, so no datagram leaves the machine.
// What it does not do: decide about TCP connections (core/policy.h) or perform them (gate/).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "core/address.h"

namespace nd7 {

struct NetworkPlan {
  std::vector<Address> upstream; // empty: the host's /etc/resolv.conf
  bool try_namespaces = true;
  std::vector<std::string> dns_only_names; // network.dns = "hosts": patterns; empty: any
  bool proxy = false;                      // start the CONNECT proxy even with namespaces
};

struct ResolveRecord {
  std::string name;                 // lower case, without trailing dot
  std::string type;                 // "A", "AAAA", "TYPE65"
  std::vector<std::string> answers; // addresses as text
  std::string refused;              // why the answer was not given, else empty
};

struct NetworkEvents {
  std::function<void(const ResolveRecord&)> on_resolve;
  // May a TCP connection to this address go out? Asked by the CONNECT proxy for the client that
  // connected from this loopback port; performs the same decision and record as the gate. Returns
  // "" or the refusal.
  std::function<std::string(const Address&, const std::string& name, std::uint16_t from_port)>
      may_connect;
  // Did a person grant this host by name, now? Such a name may be asked for although
  // dns_only_names lacks it, and may point at a private address. Empty function: none is.
  std::function<bool(const std::string& name)> name_granted;
};

class Network {
public:
  static Result<std::unique_ptr<Network>> start(NetworkPlan plan, NetworkEvents events);
  virtual ~Network() = default;
  // True when UDP sockets can be parked; else why_not() says what is missing.
  virtual bool parked() const = 0;
  virtual std::string why_not() const = 0;
  // The command that would make parking possible, if one is known.
  virtual std::string repair() const = 0;
  // A UDP socket born in the parked namespace. domain AF_INET or AF_INET6, type may carry
  // SOCK_CLOEXEC and SOCK_NONBLOCK. Thread-safe.
  virtual Result<Fd> park_socket(int domain, int type, int protocol) = 0;
  // One descriptor for the supervisor's epoll; call on_ready() when it is readable. The resolver
  // and the proxy run there, in one thread, never blocking.
  virtual int poll_fd() const = 0;
  virtual void on_ready() = 0;
  // The name the session last resolved to this address, or "". Thread-safe.
  virtual std::string name_of(const Address& address) const = 0;
  // All names it was resolved from, the latest first (at most 8): a host grant holds for any.
  virtual std::vector<std::string> names_of(const Address& address) const = 0;
  // Is it one of this machine's own addresses or in a directly connected network, now? Also by the
  // IPv4 address it carries; true when that cannot be found out. Thread-safe, a microsecond: asks
  // the kernel again only after it announced a change. For ConnectAction.local_machine.
  virtual bool local_machine(const Address& address) = 0;
  // Loopback TCP ports of the resolver and of the CONNECT proxy (0: not running). A TCP connect to
  // port 53 anywhere is led to the former by the gate; admit() names the caller's local port first,
  // connections from other ports are closed.
  virtual std::uint16_t dns_tcp_port() const = 0;
  virtual std::uint16_t proxy_port() const = 0;
  virtual void admit(std::uint16_t local_port) = 0;
  // The helper's process, 0 without namespaces: a child of the supervisor that is not the
  // session's.
  virtual int helper_pid() const = 0;
  // NAME=VALUE to add to the session's environment (RES_OPTIONS, HTTPS_PROXY, ... or nothing).
  virtual std::vector<std::string> environment() const = 0;
};

// The addresses and directly connected prefixes of this machine, for ConnectAction.local_machine.
// A snapshot; Network::local_machine() keeps one up to date.
Result<std::vector<Prefix>> machine_prefixes();
// Is somebody listening on this TCP address, and which socket (inode)? By sock_diag for this one
// address (also wildcard listeners that would accept it); 0 when nobody is.
Result<std::uint64_t> tcp_listener_inode(const Address& address);

} // namespace nd7
