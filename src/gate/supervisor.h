// The supervisor process: owns the descriptors and runs one event loop over the agent, front, the
// control and hook sockets, the resolver and the timers; receivers run the gate beside it.
//
// shell -> front (`nd7 run`, group P) -> supervisor -> agent (group P). The supervisor forks the
// agent and only then calls setsid, so the agent stays in front's group and terminal session. It is
// the agent's parent and a subreaper: Yama's scope 1 wants an ancestor, and orphans come back to
// it. If it dies, the agent dies (PDEATHSIG), every trapped call fails with ENOSYS and front kills
// the rest; if front dies, the supervisor kills all.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "core/intent.h"
#include "gate/domain.h"
#include "gate/live_policy.h"
#include "net/network.h"
#include "session/keys.h"
#include "session/log_file.h"

namespace nd7 {

// What agents/ knows and the gate does not: reading a hook's payload, phrasing what is told.
struct HookPort {
  // agent's name as in `nd7 hook NAME`, the payload's bytes, the hook's parent.
  std::function<Intent(const std::string& agent, std::string_view payload, int parent)> read;
  // What the hook prints so that the model reads `text` at this event; empty when it takes none.
  std::function<std::string(const std::string& agent, std::string_view event,
                            std::string_view text)>
      answer;
};

struct SupervisorPlan {
  std::string id;
  std::string directory;  // sessions/ID
  std::string runtime;    // runtime/ID: control and hook sockets
  std::string start_body; // of the `start` entry
  std::string agent;      // "claude", "codex", "none"
  std::string note;       // for the model at its session's start
  Policy policy;
  Domain domain;
  bool root = false;
  bool signals_scoped = false;
  bool stop_on_lost_record = true;
  std::string tty;
  NetworkPlan network;
  std::vector<std::string> read_trees; // what Landlock grants for reading
  bool reads_exact = false;            // log.reads = "exact": every read is performed
  HookPort hooks;
};

// Messages to front, one packet each: "started ID", "stopped N", "exit N", "signal N",
// "error TEXT"; from front: "continue", "signal N", "foreground 0|1".
// Runs in the forked process; returns its exit status.
int supervise(SupervisorPlan plan, LogFile& log, Fd front);

} // namespace nd7
