// Which environment variables a session gets. Names decide, values are never looked at or recorded.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nd7 {

struct EnvironmentInput {
  std::vector<std::string> variables; // NAME=VALUE as the start has them
  std::vector<std::string>
      agent_patterns;               // the known agent's own: names, or prefixes ending in '*'
  std::vector<std::string> granted; // --env NAME and env.pass
  std::vector<std::string> added;   // NAME=VALUE that nd7 sets; replaces
};
struct EnvironmentPlan {
  std::vector<std::string> variables; // NAME=VALUE for the session
  std::vector<std::string> passed;    // names, sorted
  std::vector<std::string> withheld;  // names, sorted
};
EnvironmentPlan plan_environment(const EnvironmentInput& input);

// Why this name is withheld ("looks like a credential", "leads to a socket outside"); nullptr if
// not.
const char* withheld_reason(std::string_view name);

} // namespace nd7
