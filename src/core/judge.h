// Changes decided on their content: old and new text in, a judgement out. Pure.
#pragma once

#include <string>
#include <string_view>

#include "core/policy.h"

namespace nd7 {

struct Judgement {
  bool ok = false;
  std::string rule;  // names the refused key: "git config core.hooksPath runs programs outside"
};
// `old_text` is empty when the file does not exist yet. What does not parse is refused.
Judgement judge_change(Judge kind, std::string_view old_text, std::string_view new_text);

// A `.git` file: exactly "gitdir: PATH" and a newline (gitrepository-layout(5)).
bool git_pointer_target(std::string_view text, std::string* target);

}  // namespace nd7
