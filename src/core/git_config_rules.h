// The keys of git's configuration that a session may set, and what the others do.
//
// Source: git-config(1) of 2.39 to 2.51 and git's own reading of each key. Keys are in lower case.
#pragma once

#include <optional>
#include <string_view>

#include "core/git_config.h"

namespace nd7 {

// Nothing when the key may have this value; else why not, as the end of a sentence.
// `path`: the file's own, see judge_git_config.
std::optional<std::string_view> git_key_objection(const GitConfigEntry& entry,
                                                  std::string_view path);

// True when the presence of the key may be a protection that somebody set: it must stay as it is.
bool is_git_protection(const GitConfigEntry& entry);

} // namespace nd7
