// Git's configuration: whatever the bytes, no crash; what the judge lets pass parses, keeps what
// was held, and adds no key of a short list of the worst, found by another way than the judge's
// tables.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/git_config.h"
#include "core/judge.h"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs worst_of(const std::vector<nd7::GitConfigEntry>& entries) {
  static constexpr std::string_view keys[] = {
      "core.hookspath", "core.fsmonitor", "core.sshcommand", "core.pager",     "core.editor",
      "diff.external",  "include.path",   "core.worktree",   "sequence.editor"};
  Pairs out;
  for (const nd7::GitConfigEntry& entry : entries) {
    const std::string value = entry.value.value_or("true");
    const bool off = value.empty() || value == "0" ||
                     std::string_view("fFnNoO").find(value[0]) != std::string_view::npos;
    const bool bad = std::find(std::begin(keys), std::end(keys), entry.key) != std::end(keys) ||
                     entry.key.starts_with("alias.") || entry.key.starts_with("filter.") ||
                     entry.key.starts_with("credential.") ||
                     (entry.key.ends_with("url") && value.find("::") < value.find_first_of("/:@["));
    if (bad && !(entry.key == "core.fsmonitor" && off)) out.emplace_back(entry.key, value);
  }
  return out;
}

void pair(std::string_view before, std::string_view after) {
  const nd7::Judgement judgement =
      nd7::judge_change(nd7::Judge::git_config, before, after, {"/p/.git/config", "/p"});
  check(judgement.ok == judgement.rule.empty());
  check(std::all_of(judgement.rule.begin(), judgement.rule.end(),
                    [](char c) { return c >= 0x20 && c < 0x7F; }));
  check(judgement.rule.size() < 400);
  if (!judgement.ok) return;
  const auto old_entries = nd7::parse_git_config(before), entries = nd7::parse_git_config(after);
  check(old_entries.has_value() && entries.has_value());
  const Pairs had = worst_of(*old_entries);
  for (const auto& bad : worst_of(*entries))
    check(std::find(had.begin(), had.end(), bad) != had.end());
  // What passed once passes again, and changing nothing is always right.
  check(nd7::judge_git_config(before, after, "/p/.git/config").ok);
  check(nd7::judge_git_config(after, after).ok);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // An 0x1E splits old from new; git's files hold none.
  const std::size_t split = std::min(bytes.find('\x1E'), bytes.size());
  const std::string_view before = bytes.substr(0, split);
  const std::string_view after = bytes.substr(std::min(split + 1, bytes.size()));
  pair(before, after);
  pair("", after);
  pair(before, std::string(before) + std::string(after));
  for (const std::string_view part : {bytes, before, after})
    if (const auto entries = nd7::parse_git_config(part))
      for (const nd7::GitConfigEntry& entry : *entries) {
        check(!entry.key.empty() && entry.key.size() == entry.shown.size());
        check(entry.value.has_value() || entry.raw.empty());
        check(nd7::split_git_config_key(entry.key).name.size() <= entry.key.size());
      }
  std::string target;
  if (nd7::git_pointer_target(bytes, &target)) {
    check("gitdir: " + target + "\n" == bytes);
    check(target.find_first_of(std::string_view("\0\n\r", 3)) == std::string::npos);
  }
  return 0;
}
