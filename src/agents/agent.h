// The agents nd7 knows: how to start one, how to read what its hooks say, how to speak to it.
// Values in, values out; cli/ and gate/ do the reading and writing.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/intent.h"

namespace nd7 {

enum class AgentKind { none, claude, codex };

struct AgentRow {
  AgentKind kind;
  const char* name;                  // "claude": the program's name on the PATH
  const char* source;                // "intent:claude-code"
  const char* config_variable;       // CLAUDE_CONFIG_DIR
  std::vector<const char*> pass_env; // prefixes (end in '*') and names of its own keys
  std::vector<const char*> hosts;    // what it needs, for named-host mode
};
const AgentRow& agent_row(AgentKind kind);
// By the last component of PROGRAM as found on the PATH, before links are followed.
AgentKind agent_by_program(std::string_view path);
AgentKind agent_by_name(std::string_view name); // "claude", "codex", "none"

// One event of an agent's hooks: where nd7 listens, and what the event is in the log.
struct HookEvent {
  const char* name;           // the agent's own: "PreToolUse"
  const char* kind;           // of the entry: "tool_call"; "hook" for what has no kind of its own
  int timeout_s;              // registered with this time limit; 0: not registered
  bool takes_context = false; // the model reads what the hook answers
};
std::span<const HookEvent> hook_events(AgentKind kind);
const HookEvent* hook_event(AgentKind kind, std::string_view name); // null: unknown to us

// A settings file that the user named on the command line; nullopt when it cannot be read.
std::optional<std::string> read_text_file(const std::string& path);

struct LaunchInput {
  std::string nd7;               // absolute path of this program
  std::vector<std::string> argv; // PROGRAM and ARGS as typed
  bool hooks_installed = false;  // init has registered them: do not bring them again
  std::string note;              // for the model, a few lines; kept for agents without hooks:
                                 // claude and codex get it as the SessionStart hook's answer
  std::function<std::optional<std::string>(const std::string&)> read_file = read_text_file;
};
struct Launch {
  std::vector<std::string> argv;
  std::vector<std::string> env; // NAME=VALUE to add
};
// argv and environment with hooks and the agent's own sandbox off. Our flags stand in front of all
// of the user's, where both clients take them for every subcommand, and the user's own win.
Launch launch(AgentKind kind, const LaunchInput& input);

struct HookInput {
  std::string_view payload; // bytes of stdin as received
  std::size_t keep_content_bytes = 64 << 10;
  int hook_ppid = 0;
};
// Never fails: what does not scan becomes an Intent with malformed = true and kind "hook".
// The body is one line of strict JSON, at most about 6 times keep_content_bytes (see hook.h).
Intent read_hook(AgentKind kind, const HookInput& input);
// What `nd7 hook` prints so that the model reads `text` at this event; "" when this agent does not
// accept context at this event (then keep it for the next one).
std::string hook_answer(AgentKind kind, std::string_view event, std::string_view text);

} // namespace nd7
