// Whether the agents' hooks are installed, trusted and effective: findings for `nd7 doctor`.
#pragma once

#include <string>
#include <vector>

#include "agents/agent.h"
#include "session/session.h"

namespace nd7 {

struct Finding {
  bool good = false;
  std::string text;   // one sentence, lower case, no full stop
  std::string repair; // the command or change that helps; empty when good or when there is none
};

struct AgentCheck {
  std::string nd7;        // absolute path of this program
  std::string project;    // absolute directory that is asked about
  bool ask_client = true; // also start Codex and ask it (half a second)
};
// Findings for every agent that is on the PATH or has a state directory; none for the others.
std::vector<Finding> check_agents(const Places& places, const AgentCheck& check);

// Has `nd7 init` registered every event with this agent, for this program, in the user's settings,
// and (Codex) are they trusted and on? For LaunchInput::hooks_installed.
bool hooks_installed(AgentKind kind, const Places& places, const std::string& nd7);

} // namespace nd7
