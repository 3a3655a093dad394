// The plan of a session as a value, before anything starts: rules, trees, environment, domain.
//
// make_plan() reads the disk and the kernel's facts and changes nothing but private directories;
// `nd7 run --explain` prints what it returns, the supervisor carries it out.
#pragma once

#include <string>
#include <vector>

#include "core/environment.h"
#include "core/policy.h"
#include "core/policy_text.h"
#include "gate/domain.h"
#include "gate/supervisor.h"
#include "os/kernel.h"
#include "os/program.h"
#include "session/session.h"

namespace nd7 {

struct StartOptions {
  std::vector<std::string> allow, read, hosts, ports, listens, sockets, env;
  bool only_hosts = false;
  bool whole_home = false;
  std::string profile;
};

struct PlanInput {
  Places places;
  StartOptions options;
  std::string id;                // of the session to be
  std::string cwd;               // as the person stands
  std::string nd7;               // this program, real path
  std::string agent;             // "claude", "codex", "none"
  std::vector<std::string> argv; // what is executed, argv[0] as typed
  os::ProgramChain program;
  std::vector<std::string> environment;       // NAME=VALUE as started
  std::vector<std::string> agent_patterns;    // environment names that are the agent's own
  std::vector<std::string> agent_environment; // NAME=VALUE the agent is to get
  std::vector<std::string> agent_commands;    // files its settings name as commands
  std::vector<std::string> agent_hosts;       // what it needs when only named hosts are reachable
  os::KernelFacts kernel;
};

struct Plan {
  SupervisorPlan supervisor;
  EnvironmentPlan environment;
  PolicySettings settings;        // what the policy files say beside rules
  std::vector<std::string> trees; // granted for execution
  std::vector<std::string> enforced, not_enforced;
  std::vector<std::string> notes; // for the person at start, a line each
};

Result<Plan> make_plan(const PlanInput& input);
// For --explain.
std::string plan_text(const Plan& plan);

} // namespace nd7
