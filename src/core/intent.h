// What an agent said it would do or did, read from one hook call (agents/). Never a fact: facts are
// the gate's own records.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nd7 {

struct Intent {
  std::string source;        // "intent:claude-code", "intent:codex"
  std::string kind;          // session_start, prompt, tool_call, tool_result, turn_end, ...
  std::string event;         // the agent's own event name, "PreToolUse"
  std::string agent_session; // the agent's session id; checked, safe as a path component
  std::string tool_use_id;   // empty when none
  std::string tool_name;
  std::string command;            // shell text of a Bash call, else empty
  std::vector<std::string> paths; // files that a Write/Edit/apply_patch names, absolute
  std::string body;       // JSON object for the entry: the payload's members, cut, plus hoisted
  bool malformed = false; // the payload did not scan; body holds what was kept of it
};

} // namespace nd7
