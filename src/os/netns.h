// An empty network namespace in which UDP sockets are parked.
//
// A socket keeps the network namespace it was born in, whoever uses it. start() forks a helper that
// makes a namespace with nothing but lo, routes every address of the world to lo, and listens for
// UDP on port 53; it then makes sockets on request and hands them over. Datagrams sent to anybody's
// port 53 reach the listeners (answers can be sent from the address that was asked), all others
// find nobody. Nothing leaves the machine.
//
// What it does not do: answer questions (net/resolver.h); keep TCP in (parked sockets are UDP
// only). The owner of a user namespace has all capabilities over it, so a process of the same uid
// that holds a parked socket could change addresses and routes of this namespace by ioctl; it
// reaches nobody by that, since no other device exists there.
//
// Death: the helper dies with its parent's thread (PDEATHSIG) or when the channel closes; then, or
// when it does not answer, socket() fails for good and the caller has no UDP.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>

#include "base/fd.h"
#include "base/result.h"

namespace nd7::os {

class ParkedNamespace {
public:
  // Forks: call it before threads exist, from the thread that lives longest. As root a network
  // namespace alone, else (or where that is refused) with a user namespace. Succeeds only if lo
  // really came up: an unshare that AppArmor let through without rights is an error. Errors say
  // which step failed; hint is the command that repairs it, if one is known.
  static Result<std::unique_ptr<ParkedNamespace>> start();
  ~ParkedNamespace();
  ParkedNamespace(const ParkedNamespace&) = delete;
  ParkedNamespace& operator=(const ParkedNamespace&) = delete;

  // A new UDP socket of the namespace, close-on-exec. `domain` AF_INET or AF_INET6; `type`
  // SOCK_DGRAM with SOCK_NONBLOCK and SOCK_CLOEXEC as wanted; `protocol` 0 or IPPROTO_UDP. Anything
  // else is EPROTONOSUPPORT, ESOCKTNOSUPPORT or EAFNOSUPPORT as socket(2) has them. Thread-safe; 30
  // µs.
  Result<Fd> socket(int domain, int type, int protocol);

  // The listeners, non-blocking, with IP_PKTINFO and IPV6_RECVPKTINFO set. The caller reads and
  // answers them. udp6() is -1 where the kernel has no IPv6.
  int udp4() const { return udp4_.get(); }
  int udp6() const { return udp6_.get(); }
  pid_t helper() const { return helper_; }

private:
  ParkedNamespace() = default;

  std::mutex mutex_;
  Fd channel_;
  Fd udp4_;
  Fd udp6_;
  pid_t helper_ = -1;
};

} // namespace nd7::os
