// The resolver's two doors: UDP port 53 in the parked namespace, TCP on a loopback port of the
// host.
#pragma once

#include <memory>
#include <unordered_map>

#include "base/fd.h"
#include "net/admission.h"
#include "net/event_loop.h"
#include "net/resolver.h"

namespace nd7 {

// Answers datagrams from the address that was asked, whichever it was. The listeners
// (os/netns.h) stay the caller's and must outlive this.
class DnsUdpServer {
public:
  DnsUdpServer(EventLoop& loop, Resolver& resolver) : loop_(loop), resolver_(resolver) {}
  ~DnsUdpServer();
  Result<> listen(int udp);

private:
  void on_datagrams(int udp);

  EventLoop& loop_;
  Resolver& resolver_;
  std::vector<int> listeners_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Messages with a length before them (RFC 7766), several in a row; closed after 30 s without one.
// At most 64 connections; of one connection at most 16 questions at a time are under way.
class DnsTcpServer {
public:
  DnsTcpServer(EventLoop& loop, Resolver& resolver, Admission& admission)
      : loop_(loop), resolver_(resolver), admission_(admission) {}
  ~DnsTcpServer();
  // 127.0.0.1 and, where there is IPv6, ::1 with the same port.
  Result<> start();
  std::uint16_t port() const { return port_; }

private:
  class Connection;

  void on_connection(int listener);

  EventLoop& loop_;
  Resolver& resolver_;
  Admission& admission_;
  Fd listener4_, listener6_;
  std::uint16_t port_ = 0;
  std::unordered_map<int, std::shared_ptr<Connection>> connections_;
};

// Listens on 127.0.0.1 (port 0: any) and tells the port; for ::1 when `v6`.
Result<Fd> listen_on_loopback(bool v6, std::uint16_t& port);

} // namespace nd7
