// Front: what the shell started. Stays in the agent's process group, ignores the terminal's
// signals, stops when the agent stopped, ends as the agent did.
#pragma once

#include "gate/supervisor.h"

namespace nd7 {

// Forks the supervisor and waits; returns the exit status, or does not return when the agent died
// of a signal (front then dies of the same).
int run_front(SupervisorPlan plan, LogFile& log);

} // namespace nd7
