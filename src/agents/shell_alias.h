// The block in a shell's start file that makes `claude` mean `nd7 run claude`. One form serves
// bash, zsh and fish. Edits are textual; taking the last alias out restores the text byte for byte.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agents/agent.h"

namespace nd7 {

struct AliasEdit {
  std::string_view nd7; // absolute path of the program
  std::vector<AgentKind> add;
  std::vector<AgentKind> remove;
};
// `text` with the block brought up to date, at its end when there is none yet. `exists`: false when
// there is no file (text is then empty).
std::string edit_aliases(std::string_view text, bool exists, const AliasEdit& edit);
// Did edit_aliases make this file? Then it may be removed once nothing is left in it.
bool made_for_aliases(std::string_view text);

} // namespace nd7
