#include "agents/settings_commands.h"

#include <algorithm>

namespace nd7 {
namespace {

constexpr std::size_t files_max = 1000;

// The quoted strings of JSON and TOML alike; escapes other than \" and \\ do not occur in paths.
std::vector<std::string> quoted_strings(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char quote = text[at];
    if (quote != '"' && quote != '\'') continue;
    std::string string;
    std::size_t end = at + 1;
    for (; end < text.size() && text[end] != quote && text[end] != '\n'; ++end) {
      if (text[end] == '\\' && quote == '"' && end + 1 < text.size()) ++end;
      string += text[end];
    }
    out.push_back(std::move(string));
    at = end;
  }
  return out;
}

std::string as_path(std::string_view word, const std::string& home, const std::string& base) {
  for (const std::string_view start : {"~/", "$HOME/", "${HOME}/"})
    if (word.starts_with(start)) return home + "/" + std::string(word.substr(start.size()));
  for (const std::string_view start : {"$CLAUDE_PROJECT_DIR/", "${CLAUDE_PROJECT_DIR}/", "./"})
    if (word.starts_with(start)) return base + "/" + std::string(word.substr(start.size()));
  if (word.starts_with('/')) return std::string(word);
  if (word.contains('/') && !word.contains("://")) return base + "/" + std::string(word);
  return {};
}

} // namespace

std::vector<std::string> named_files(std::string_view settings, const std::string& home,
                                     const std::string& base) {
  std::vector<std::string> out;
  for (const std::string& string : quoted_strings(settings)) {
    std::size_t at = 0;
    while (at < string.size() && out.size() < files_max) {
      const std::size_t start = string.find_first_not_of(" \t'\"`;|&()<>=,", at);
      if (start == std::string::npos) break;
      const std::size_t end =
          std::min(string.find_first_of(" \t'\"`;|&()<>=,", start), string.size());
      const std::string path =
          as_path(std::string_view(string).substr(start, end - start), home, base);
      if (!path.empty() && std::find(out.begin(), out.end(), path) == out.end())
        out.push_back(path);
      at = end;
    }
  }
  return out;
}

} // namespace nd7
