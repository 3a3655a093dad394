// Who may use the loopback ports of the resolver and the proxy: connections whose local port the
// gate named just before it performed the connect.
//
// Other programs of this machine reach these ports too, and must not be served: what they ask would
// stand in the session's record. An admission is good for one connection and for ten seconds.
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "base/fd.h"
#include "core/address.h"

namespace nd7 {

class Admission {
public:
  void admit(std::uint16_t local_port);
  // True once for each admitted port. `peer` must be a loopback address.
  bool take(const Address& peer);

private:
  using Clock = std::chrono::steady_clock;
  std::mutex mutex_;
  std::unordered_map<std::uint16_t, Clock::time_point> ports_; // until when
};

// A listening non-blocking TCP socket on 127.0.0.1 or, for the same `port`, on ::1.
// Accepts the next connection that may be served; others are closed. Empty when there is none now.
Fd accept_admitted(int listener, Admission& admission);

} // namespace nd7
