// Settings of Codex and Claude Code: whatever the bytes, no crash, and nothing that passes brings,
// changes or removes one of the keys that decide on later sessions.
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/judge.h"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void check_words(const nd7::Judgement& judgement) {
  check(judgement.ok == judgement.rule.empty());
  check(judgement.rule.size() < 1000);
  check(std::all_of(judgement.rule.begin(), judgement.rule.end(),
                    [](char c) { return c >= 0x20 && c < 0x7F; }));
}

void codex(std::string_view before, std::string_view after) {
  const nd7::Judgement judgement =
      nd7::judge_change(nd7::Judge::codex_config, before, after, {"/h/.codex/config.toml", "/p"});
  check_words(judgement);
  if (!judgement.ok) return;
  toml::table was = toml::parse(before), is = toml::parse(after);
  for (const std::string_view key :
       {"projects", "notice", "tui", "model", "model_reasoning_effort"}) {
    was.erase(key);
    is.erase(key);
  }
  check(was == is);
}

void claude(std::string_view before, std::string_view after) {
  const nd7::Judgement judgement = nd7::judge_change(nd7::Judge::claude_settings, before, after);
  check_words(judgement);
  if (!judgement.ok) return;
  const auto read = [](std::string_view text) {
    const bool blank = text.find_first_not_of(" \t\r\n") == std::string_view::npos;
    return nlohmann::json::parse(blank ? "{}" : text, nullptr, false);
  };
  const nlohmann::json was = read(before), is = read(after);
  if (was.is_discarded() || is.is_discarded()) return; // a number that its doubles cannot hold
  static constexpr std::array<std::string_view, 11> keys = {"hooks",
                                                            "permissions",
                                                            "env",
                                                            "sandbox",
                                                            "statusLine",
                                                            "apiKeyHelper",
                                                            "awsAuthRefresh",
                                                            "disableAllHooks",
                                                            "enabledPlugins",
                                                            "outputStyle",
                                                            "agent"};
  for (const std::string_view key : keys) {
    check(was.contains(key) == is.contains(key));
    if (was.contains(key)) check(was[key] == is[key]);
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // An 0x1E splits old from new; neither format may hold one.
  const std::size_t split = std::min(bytes.find('\x1E'), bytes.size());
  const std::string_view before = bytes.substr(0, split);
  const std::string_view after = bytes.substr(std::min(split + 1, bytes.size()));
  for (const auto judge : {codex, claude}) {
    judge(before, after);
    judge("", after);
    judge(before, before);
  }
  return 0;
}
