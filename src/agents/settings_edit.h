// Our hooks in a settings file that belongs to somebody else: Claude Code's settings.json, Codex's
// hooks.json. Both have the form {"hooks": {EVENT: [GROUP...]}}.
//
// The edits are insertions into the text, guided by the scanner's spans; nothing is re-serialised,
// so every byte that is not ours stays. remove_hooks(add_hooks(text)) is text again, byte for
// byte. How removal knows what was there before:
//   - a container that we made ends in one line end (or none) before its bracket and goes with us;
//   - an empty container that was there keeps what stood in it after an empty line of ours.
// A text that does not scan as one JSON object is refused, also one with a duplicate key or a
// comment.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agents/agent.h"
#include "base/result.h"

namespace nd7 {

struct HookGroup {
  std::string event;
  std::string text;      // the group, one line of JSON
  std::size_t index = 0; // in its event's list; read only
};

// The groups nd7 registers with this agent.
std::vector<HookGroup> nd7_hook_groups(AgentKind kind, std::string_view nd7);
// Is this group nd7's own, of whatever path: one hook that runs a program named nd7 as `hook
// AGENT`?
bool is_nd7_group(AgentKind kind, std::string_view group);
// The program that a group of ours runs, as written; empty when it is not ours.
std::string nd7_program_of(AgentKind kind, std::string_view group);

// Ours in `text`, in order.
Result<std::vector<HookGroup>> find_hooks(AgentKind kind, std::string_view text);
// `text` (nullopt: there is no file) with `groups`. A group of ours that is there already is
// replaced where it stands, if it differs; other groups of an event stay in front.
Result<std::string> add_hooks(AgentKind kind, std::optional<std::string_view> text,
                              const std::vector<HookGroup>& groups);
// `text` without any group of ours. nullopt: nothing is left of a file that add_hooks made.
Result<std::optional<std::string>> remove_hooks(AgentKind kind, std::string_view text);

} // namespace nd7
