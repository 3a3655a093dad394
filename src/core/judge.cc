#include "core/judge.h"

namespace nd7 {

Judgement judge_change(Judge, std::string_view, std::string_view) {
  return {false, "this file is not judged yet"};
}

bool git_pointer_target(std::string_view text, std::string* target) {
  constexpr std::string_view prefix = "gitdir: ";
  if (!text.starts_with(prefix) || !text.ends_with('\n')) return false;
  text.remove_prefix(prefix.size());
  text.remove_suffix(1);
  if (text.empty() || text.find_first_of(std::string_view("\n\0", 2)) != std::string_view::npos)
    return false;
  *target = text;
  return true;
}

}  // namespace nd7
