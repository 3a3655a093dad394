// Git's configuration files: the parser, and which keys a session may change.
//
// The parser reads as git does (config.c; git-config(1), "Syntax"), quirks included: it must never
// see another list of keys than git will. Why our own: docs/decisions/git-config-parser.md.
//
// The judge allows by list: a key passes when it is known to start no program, lead to no other
// file and switch off no protection, also with this value. Everything else must stand in the old
// text already, the same values in the same order. Unknown keys are refused.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/judge.h"

namespace nd7 {

constexpr std::size_t git_config_bytes_max = std::size_t{1} << 20;

struct GitConfigEntry {
  std::string key;                  // as `git config --list` names it: "remote.Origin.url"
  std::string shown;                // the same in the spelling of the file: "core.hooksPath"
  std::optional<std::string> value; // nothing: a key without '=', which git reads as true.
                                    // Space inside is kept as written (git before 2.45 turned an
                                    // unquoted tab into a space)
  std::string raw;                  // the bytes after '=', continuation lines included
};

// Git's split of a key: before the first dot, between the first and the last, after the last.
// `subsection` is absent when there is one dot only; "core..x" has an empty one.
struct GitConfigKey {
  std::string_view section;
  std::optional<std::string_view> subsection;
  std::string_view name;
};
GitConfigKey split_git_config_key(std::string_view key);

// Entries in order. Errors: "line 3: not git's syntax", NUL bytes, more than git_config_bytes_max.
Result<std::vector<GitConfigEntry>> parse_git_config(std::string_view text);

// True for what `remote.NAME.url` may be: https, http, ssh, git, file, scp's host:path, a path.
// Not: transport helpers ("ext::sh -c x", "foo://x" runs git-remote-foo), option-like hosts.
bool is_plain_git_url(std::string_view url);

// `path`: where the file lies, absolute and resolved; needed for core.worktree of a submodule,
// which is refused without it.
Judgement judge_git_config(std::string_view old_text, std::string_view new_text,
                           std::string_view path = {});

} // namespace nd7
