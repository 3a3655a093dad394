// The agents nd7 knows: how to start one, how to read what its hooks say, how to speak to it.
// Values in, values out; cli/ and gate/ do the reading and writing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/intent.h"

namespace nd7 {

enum class AgentKind { none, claude, codex };

struct AgentRow {
  AgentKind kind;
  const char* name;                        // "claude": the program's name on the PATH
  const char* source;                      // "intent:claude-code"
  const char* config_variable;             // CLAUDE_CONFIG_DIR
  std::vector<const char*> pass_env;       // prefixes (end in '*') and names of its own keys
  std::vector<const char*> hosts;          // what it needs, for named-host mode
};
const AgentRow& agent_row(AgentKind kind);
// By the last component of PROGRAM as found on the PATH, before links are followed.
AgentKind agent_by_program(std::string_view path);
AgentKind agent_by_name(std::string_view name);  // "claude", "codex", "none"

struct LaunchInput {
  std::string nd7;                // absolute path of this program
  std::vector<std::string> argv;  // PROGRAM and ARGS as typed
  bool hooks_installed = false;   // init has registered them: do not bring them again
  std::string note;               // for the model, a few lines
};
struct Launch {
  std::vector<std::string> argv;
  std::vector<std::string> env;   // NAME=VALUE to add
};
// argv and environment with hooks, own sandbox off, note. Codex: flags follow the subcommand.
Launch launch(AgentKind kind, const LaunchInput& input);

struct HookInput {
  std::string_view payload;         // bytes of stdin as received
  std::size_t keep_content_bytes = 64 << 10;
  int hook_ppid = 0;
};
// Never fails: what does not scan becomes an Intent with malformed = true and kind "hook".
Intent read_hook(AgentKind kind, const HookInput& input);
// What `nd7 hook` prints so that the model reads `text` at this event; "" when this agent does not
// accept context at this event (then keep it for the next one).
std::string hook_answer(AgentKind kind, std::string_view event, std::string_view text);

}  // namespace nd7
