// Where the agents keep the files that nd7 init edits and nd7 doctor reads, and how such a file of
// somebody else is replaced.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agents/agent.h"
#include "agents/codex_trust.h"
#include "base/result.h"
#include "session/session.h"

namespace nd7 {

struct AgentFiles {
  std::string directory;     // ~/.claude, ~/.codex, or where the agent's own variable leads
  std::string user_hooks;    // settings.json; hooks.json
  std::string project_hooks; // <project>/.claude/settings.local.json; <project>/.codex/hooks.json
  std::string config;        // Codex: config.toml, which holds the trust; else empty
};
// `project`: an absolute directory; empty: project_hooks is empty too. The names are spelled as the
// agent itself spells them (Codex makes them part of its trust records).
AgentFiles agent_files(AgentKind kind, const Places& places, const std::string& project);

// This program's file, as the kernel names it. Errors: it was replaced or deleted meanwhile.
Result<std::string> own_program();
// The program that a shell would start; empty when there is none on the PATH.
std::string find_on_path(std::string_view name);

// The text of a file, nullopt when there is none. Errors: unreadable, not a regular file, larger
// than 16 MiB.
Result<std::optional<std::string>> read_settings_text(const std::string& path);

// One file to be changed. nullopt: there is no such file, before or after.
struct FileChange {
  std::string path;
  std::optional<std::string> before;
  std::optional<std::string> after;
};
// Makes the change: atomically, at the target of a link, with mode and owner kept. Errors: the file
// is no longer as it was read, or the system's.
Result<> apply_change(const FileChange& change);

// The change as text: removed lines with "-", added ones with "+", one line of context.
std::string change_text(const FileChange& change);

// The hooks of nd7 that stand in `text` of the file `source`, as Codex sees them.
std::vector<CodexHook> codex_hooks_in(std::string_view text, const std::string& source);

} // namespace nd7
