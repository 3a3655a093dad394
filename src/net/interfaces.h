// The addresses of this machine and the networks it is directly connected to.
#pragma once

#include <string>
#include <vector>

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

} // namespace nd7
