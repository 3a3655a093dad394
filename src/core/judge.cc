#include "core/judge.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/git_config.h"
#include "core/judge_agents.h"

namespace nd7 {

Judgement judge_change(Judge kind, std::string_view old_text, std::string_view new_text,
                       const JudgedFile& file) {
  switch (kind) {
  case Judge::git_config:
    return judge_git_config(old_text, new_text, file.path);
  case Judge::codex_config:
    return judge_codex_config(old_text, new_text, file.project);
  case Judge::claude_settings:
    return judge_claude_settings(old_text, new_text);
  case Judge::git_pointer: // decided on where it leads: git_pointer_target()
  case Judge::none:
    break;
  }
  return {false, "no judge for this file"};
}

std::string printable_key(std::string_view key) {
  constexpr std::size_t length_max = 200;
  std::string out;
  for (const char c : key) {
    if (out.size() >= length_max) return out + "...";
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F)
      out += c;
    else
      out += fmt::format("\\x{:02x}", byte);
  }
  return out;
}

bool git_pointer_target(std::string_view text, std::string* target) {
  constexpr std::string_view begin = "gitdir: ";
  constexpr std::size_t length_max = 4096; // PATH_MAX
  if (!text.starts_with(begin) || !text.ends_with('\n')) return false;
  const std::string_view path = text.substr(begin.size(), text.size() - begin.size() - 1);
  if (path.empty() || path.size() >= length_max) return false;
  if (path.front() == ' ' || path.back() == ' ') return false;
  const bool control = std::any_of(path.begin(), path.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
  });
  if (control) return false;
  *target = path;
  return true;
}

} // namespace nd7
