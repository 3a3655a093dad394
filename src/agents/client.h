// What claude.cc, codex.cc and generic.cc each provide; agent.cc picks one by kind.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agents/agent.h"

namespace nd7 {

struct Client {
  AgentRow row;
  std::span<const HookEvent> events;
  Launch (*launch)(const LaunchInput& input);
};
const Client& claude_client();
const Client& codex_client();
const Client& generic_client();

// The group of one event's hooks as it stands in a settings file or flag, one line of JSON.
std::string claude_hook_group(std::string_view nd7, int timeout_s);
std::string codex_hook_group(std::string_view nd7, int timeout_s);
// Codex runs its hooks as a line of the login shell: this is that line.
std::string codex_hook_command(std::string_view nd7);
// One word of a shell's line, whichever shell it is: sh, bash, zsh and fish agree on the quoting.
std::string hook_word(std::string_view text);

} // namespace nd7
