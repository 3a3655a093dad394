// Decides on the content of a change to a file that both the session and its tools outside read.
//
// Pure: old and new bytes in, an answer out. What does not parse is refused; so is what is not
// known. The caller must put the very bytes it asked about in place (gate/judged.h says how).
#pragma once

#include <string>
#include <string_view>

#include "core/policy.h"

namespace nd7 {

struct Judgement {
  bool ok = false;
  std::string rule; // names the refused key: "git config core.hooksPath runs programs later
                    // outside". One printable line; empty when ok
};

// Where the judged file lies and for whom; what depends on it is refused when it is not given.
struct JudgedFile {
  std::string_view path;    // absolute and resolved; for core.worktree of submodules
  std::string_view project; // absolute and resolved; when given, Codex may record trust only here
};

// `kind`: git_config, codex_config or claude_settings (others are refused). `old_text` is empty
// when the file does not exist yet. An old text that does not parse is refused as well: a person
// repairs it.
Judgement judge_change(Judge kind, std::string_view old_text, std::string_view new_text,
                       const JudgedFile& file = {});

// A key as the rule of a Judgement shows it: bytes other than printable ASCII as \xNN, cut at 200.
std::string printable_key(std::string_view key);

// A `.git` file is "gitdir: PATH\n" (gitrepository-layout(5)). Gives PATH, which may be relative to
// the file's directory. False for anything else, also for what git would read leniently (no line
// end, CR, more lines), for control characters, and for white space around PATH.
bool git_pointer_target(std::string_view text, std::string* target);

} // namespace nd7
