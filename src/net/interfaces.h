// The addresses of this machine and the networks it is directly connected to.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "core/address.h"

namespace nd7 {

// One row of machine_prefixes() (net/network.h) with the reason it is there, for people.
struct MachinePrefix {
  Prefix prefix;
  std::string what; // "an address of this machine (eth0)", "a network connected to eth0"
};

// Of the caller's network namespace, all routing tables: own addresses (/32, /128, also the far end
// of a point-to-point link) and the destinations of routes without a gateway. Not the default route
// and not multicast; routes of VPNs without a gateway count, they lead to somebody's inside. A
// route that covers half of the address space or more (0.0.0.0/1, as some VPNs set) is taken for a
// default route.
Result<std::vector<MachinePrefix>> machine_prefix_list();

// The same list kept, and read again only after the kernel said that a link, an address or a route
// changed: a look costs one system call. Thread-safe. Bound to the network namespace it was made
// in.
class MachinePrefixes {
public:
  static Result<std::unique_ptr<MachinePrefixes>> open();
  // As of now. An error when they cannot be read: nothing may then be taken for a foreign host.
  Result<std::shared_ptr<const std::vector<Prefix>>> current();

private:
  MachinePrefixes() = default;

  std::mutex mutex_;
  Fd changes_;
  std::shared_ptr<const std::vector<Prefix>> known_; // null: read again
};

} // namespace nd7
