// A CONNECT proxy on a loopback port, for machines where UDP cannot be parked: programs that honour
// HTTPS_PROXY then need no DNS of their own.
//
// Each tunnel: read the request strictly, resolve by the session's resolver, ask may_connect for
// the very address that is dialled (it decides and records as the gate does), connect, relay bytes.
// What is refused gets 403 and a sentence, a host without address or that does not answer 502 or
// 504. Not inspected: what goes through the tunnel. Bounds: 256 tunnels, 8 KiB of request, 10 s for
// the request, 10 s for each address dialled, 64 KiB waiting in each direction, 1 h without a byte
// either way.
#pragma once

#include <chrono>
#include <memory>
#include <unordered_map>

#include "net/admission.h"
#include "net/event_loop.h"
#include "net/network.h"
#include "net/resolver.h"

namespace nd7 {

struct ProxyLimits {
  std::size_t tunnels_max = 256;
  std::size_t request_bytes_max = 8192;
  std::size_t waiting_bytes_max = 65536;
  std::chrono::milliseconds request{10'000};
  std::chrono::milliseconds dial{10'000};
  std::chrono::milliseconds idle{3'600'000};
};

class Proxy {
public:
  using MayConnect = decltype(NetworkEvents::may_connect);

  Proxy(EventLoop& loop, Resolver& resolver, Admission& admission, MayConnect may_connect,
        ProxyLimits limits = {});
  ~Proxy();
  Result<> start();
  std::uint16_t port() const { return port_; }

private:
  class Tunnel;
  friend class Tunnel;

  void on_connection();

  EventLoop& loop_;
  Resolver& resolver_;
  Admission& admission_;
  MayConnect may_connect_;
  ProxyLimits limits_;
  Fd listener_;
  std::uint16_t port_ = 0;
  std::unordered_map<Tunnel*, std::shared_ptr<Tunnel>> tunnels_;
};

} // namespace nd7
