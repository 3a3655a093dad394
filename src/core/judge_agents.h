// What a session may change of the agents' own settings: what Codex and Claude Code write there of
// themselves. Everything else stays as it is, also what is removed: those files decide which
// programs run as hooks and how the next session is confined.
#pragma once

#include <string_view>

#include "core/judge.h"

namespace nd7 {

constexpr std::size_t agent_settings_bytes_max = std::size_t{4} << 20;

// $CODEX_HOME/config.toml. Passes: projects.PATH.trust_level for a new PATH (`project`, below it,
// or a repository's root above it; any when `project` is empty), what /model, /theme and the
// questions at the start write (model, model_reasoning_effort, tui.theme,
// tui.screen_reader_detection_done, notice.model_migrations). Refused: every other key that is new,
// changed or removed.
Judgement judge_codex_config(std::string_view old_text, std::string_view new_text,
                             std::string_view project = {});

// ~/.claude/settings.json. Passes: the keys of the table in judge_agents.cc (model, theme, ...),
// with values of their type. Refused: every other key that is new, changed or removed. A member
// counts as unchanged when it is the same JSON apart from white space and escapes in strings.
Judgement judge_claude_settings(std::string_view old_text, std::string_view new_text);

} // namespace nd7
