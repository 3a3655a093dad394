// What the proxy variables of an environment need: a session reaches a proxy like any other place.
#pragma once

#include <string>
#include <vector>

#include "core/policy.h"

namespace nd7 {

// One sentence for each distinct place that HTTPS_PROXY, HTTP_PROXY or ALL_PROXY (also in lower
// case) lead to and that this policy refuses, with the option of `nd7 run` that opens it.
// A name on port 443 is passed over: only its address would tell. `environment`: NAME=VALUE.
std::vector<std::string> proxy_notes(const std::vector<std::string>& environment,
                                     const Policy& policy);

} // namespace nd7
