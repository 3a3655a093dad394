// Which tool call an effect belongs to, and how that is known.
//
// An agent announces a call (its PreToolUse hook); the process it then starts for it is recognised
// by what the agent itself put there: Codex gives CODEX_TOOL_CALL_ID in the command's environment,
// Claude Code the command's text in the argv of its shell. Descendants inherit; where a double fork
// broke the chain the process session tells (each call's shell is its own); the agent's own writes
// are matched by path. Nothing is guessed in silence: the join says how it was made.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/intent.h"
#include "gate/tracee.h"

namespace nd7 {

class Joins {
public:
  void announce(const Intent& intent);           // kind tool_call
  void finished(const std::string& tool_use_id); // its result came; later matches by session only
  // A process executed a program. `argv` as given, `environment` NUL-separated (may be empty).
  Join of_exec(const Process& process, const std::vector<std::string>& argv,
               std::string_view environment);
  // A process seen for the first time; `parent` may be null.
  Join of_new(const Process& process, const Process* parent);
  // A write by a process that belongs to no call: the agent's own file tools.
  Join of_own_write(std::string_view path);
  bool any_open(); // is a call announced and not finished?

private:
  struct Announced {
    std::string id;
    std::string command;
    std::vector<std::string> paths;
    bool open = true;
    bool started = false;
  };
  std::mutex lock_;
  std::vector<Announced> calls_;          // bounded: the oldest are dropped
  std::map<pid_t, std::string> sessions_; // process session -> call
};

} // namespace nd7
