// Files that the agents' settings name as commands: hooks, status lines, key helpers, notifiers.
// They run outside too, so no session may change them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nd7 {

// Words of the strings in a settings file (JSON or TOML) that look like a path: absolute, with "~"
// or $HOME, or with a slash (then below `base`). Absolute, not resolved, not checked for existence.
// A file that does not parse gives the words of its quoted strings all the same.
std::vector<std::string> named_files(std::string_view settings, const std::string& home,
                                     const std::string& base);

} // namespace nd7
