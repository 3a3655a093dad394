// Asking the installed Codex itself which hooks it knows and trusts: `codex app-server`, method
// hooks/list. The client is started for it and ended again.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace nd7 {

struct CodexListedHook {
  std::string key; // "/home/u/.codex/hooks.json:pre_tool_use:0:0"
  std::string command;
  std::string trust; // "trusted", "untrusted", "modified", "managed"
  bool enabled = true;
};
// `program`: the codex to ask; `directory`: the project it is asked about. Takes about half a
// second, 20 s at most.
Result<std::vector<CodexListedHook>> ask_codex_hooks(const std::string& program,
                                                     const std::string& directory);

} // namespace nd7
