#include "agents/shell_alias.h"

#include <fmt/format.h>

#include <algorithm>

#include "agents/client.h"

namespace nd7 {
namespace {

constexpr std::string_view begin_line = "# nd7: begin (nd7 init wrote this, nd7 init --remove "
                                        "takes it out; `command claude` is bare)\n";
constexpr std::string_view end_line = "# nd7: end\n";

std::string alias_line(std::string_view nd7, AgentKind kind) {
  const std::string name = agent_row(kind).name;
  return fmt::format("alias {}={}\n", name, hook_word(hook_word(nd7) + " run " + name));
}

} // namespace

std::string edit_aliases(std::string_view text, bool exists, const AliasEdit& edit) {
  const std::size_t begin = text.find(begin_line);
  const std::size_t end =
      begin == std::string_view::npos ? begin : text.find(end_line, begin + begin_line.size());
  const bool found = end != std::string_view::npos;
  const std::string_view block =
      found ? text.substr(begin + begin_line.size(), end - begin - begin_line.size())
            : std::string_view();
  std::string lines;
  for (const AgentKind kind : {AgentKind::claude, AgentKind::codex}) {
    const auto in = [&](const std::vector<AgentKind>& kinds) {
      return std::ranges::find(kinds, kind) != kinds.end();
    };
    const bool there =
        block.find(fmt::format("alias {}=", agent_row(kind).name)) != std::string_view::npos;
    if (in(edit.add) || (there && !in(edit.remove))) lines += alias_line(edit.nd7, kind);
  }
  std::string whole;
  if (!lines.empty()) whole = fmt::format("{}{}{}", begin_line, lines, end_line);
  std::string out(text);
  if (found) {
    std::size_t from = begin;
    if (whole.empty() && from > 0) --from; // the line end that came with the block
    out.replace(from, end + end_line.size() - from, whole);
  } else if (!whole.empty()) {
    if (exists) out += '\n'; // ends a last line without an end
    out += whole;
  }
  return out;
}

bool made_for_aliases(std::string_view text) {
  return text.starts_with(begin_line);
}

} // namespace nd7
