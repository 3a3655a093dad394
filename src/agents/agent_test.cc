#include "agents/agent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "agents/codex_trust.h"
#include "base/json.h"

namespace nd7 {
namespace {

using Words = std::vector<std::string>;

LaunchInput input(Words argv) {
  LaunchInput result;
  result.nd7 = "/usr/bin/nd7";
  result.argv = std::move(argv);
  result.read_file = [](const std::string& path) -> std::optional<std::string> {
    if (path == "mine.json") return R"({"model":"m","hooks":{"Stop":[{"hooks":[]}]}})";
    if (path == "broken.json") return "{";
    return std::nullopt;
  };
  return result;
}

// The spans of a JsonObject point into its text, which is kept here.
JsonObject settings_of(std::string owned) {
  static std::deque<std::string> texts;
  const std::string& text = texts.emplace_back(std::move(owned));
  auto object = scan_json_object(text);
  EXPECT_TRUE(object) << text;
  return object.value_or(JsonObject{});
}

TEST(Agents, KnownByTheLastComponent) {
  EXPECT_EQ(agent_by_program("claude"), AgentKind::claude);
  EXPECT_EQ(agent_by_program("/opt/x/claude"), AgentKind::claude);
  EXPECT_EQ(agent_by_program("./codex"), AgentKind::codex);
  EXPECT_EQ(agent_by_program("/usr/bin/claude/"), AgentKind::none);
  EXPECT_EQ(agent_by_program("bash"), AgentKind::none);
  EXPECT_EQ(agent_by_program(""), AgentKind::none);
  EXPECT_EQ(agent_by_name("codex"), AgentKind::codex);
  EXPECT_EQ(agent_by_name("none"), AgentKind::none);
}

TEST(LaunchClaude, BringsHooksAndSwitchesItsSandboxOff) {
  const Launch launched = launch(AgentKind::claude, input({"claude", "-p", "hi"}));
  ASSERT_EQ(launched.argv.size(), 5U);
  EXPECT_EQ(launched.argv[0], "claude");
  EXPECT_EQ(launched.argv[1], "--settings");
  EXPECT_EQ((Words{launched.argv.begin() + 3, launched.argv.end()}), (Words{"-p", "hi"}));
  EXPECT_EQ(launched.env, Words{"DISABLE_AUTOUPDATER=1"});
  const JsonObject settings = settings_of(launched.argv[2]);
  EXPECT_EQ(settings.find("sandbox"), R"({"enabled":false})");
  EXPECT_EQ(settings.find("disableAllHooks"), "false");
  const JsonObject hooks = settings_of(std::string(settings.find("hooks")));
  EXPECT_EQ(hooks.members().size(), 32U);
  EXPECT_FALSE(hooks.has("WorktreeCreate"));
  EXPECT_FALSE(hooks.has("MessageDisplay"));
  EXPECT_EQ(
      hooks.find("PreToolUse"),
      R"([{"hooks":[{"type":"command","command":"/usr/bin/nd7","args":["hook","claude"],"timeout":30}]}])");
}

TEST(LaunchClaude, BringsItsHooksAlsoWhenTheyAreInstalled) {
  LaunchInput installed = input({"claude"});
  installed.hooks_installed = true;
  EXPECT_EQ(launch(AgentKind::claude, installed).argv,
            launch(AgentKind::claude, input({"claude"})).argv);
}

TEST(LaunchClaude, MergesTheUsersOwnSettings) {
  for (const Words& argv : {Words{"claude", "--settings", R"( {"model":"m","sandbox":{"x":1}} )"},
                            Words{"claude", R"(--settings={"model":"m","sandbox":{"x":1}})"}}) {
    const Launch launched = launch(AgentKind::claude, input(argv));
    ASSERT_EQ(launched.argv.size(), argv.size());
    const std::string last = launched.argv.back();
    const JsonObject settings = settings_of(last.substr(last.find('{')));
    EXPECT_EQ(settings.text("model"), "m");
    EXPECT_EQ(settings.find("sandbox"), R"({"x":1,"enabled":false})");
    EXPECT_TRUE(settings.has("hooks"));
  }
  const Launch file = launch(AgentKind::claude, input({"claude", "--settings", "mine.json", "-c"}));
  const JsonObject settings = settings_of(file.argv[2]);
  EXPECT_EQ(settings.text("model"), "m");
  const auto stop = scan_json_array(settings_of(std::string(settings.find("hooks"))).find("Stop"));
  ASSERT_EQ(stop->size(), 2U);
  EXPECT_EQ(stop->front(), R"({"hooks":[]})");
  EXPECT_EQ(file.argv[3], "-c");
}

TEST(LaunchClaude, TheUsersSwitchOfAllHooksStands) {
  const Launch launched =
      launch(AgentKind::claude, input({"claude", "--settings", R"({"disableAllHooks":true})"}));
  EXPECT_EQ(settings_of(launched.argv[2]).find("disableAllHooks"), "true");
}

TEST(LaunchClaude, LeavesSettingsItCannotReadToTheClient) {
  for (const char* value : {"broken.json", "missing.json", "{\"a\":1,\"a\":2}", "{]}"}) {
    const Words argv = {"claude", "--settings", value};
    EXPECT_EQ(launch(AgentKind::claude, input(argv)).argv, argv);
  }
}

TEST(LaunchClaude, WhatFollowsTheDashesIsNotTheClients) {
  const Launch launched = launch(
      AgentKind::claude, input({"claude", "mcp", "add", "x", "--", "prog", "--settings", "y"}));
  ASSERT_EQ(launched.argv.size(), 10U);
  EXPECT_EQ(launched.argv[1], "--settings");
  EXPECT_EQ(launched.argv[9], "y");
}

TEST(LaunchCodex, FlagsStandInFrontOfTheUsers) {
  const Launch launched =
      launch(AgentKind::codex, input({"codex", "exec", "-s", "read-only", "x"}));
  EXPECT_EQ(launched.argv.front(), "codex");
  EXPECT_EQ((Words{launched.argv.end() - 4, launched.argv.end()}),
            (Words{"exec", "-s", "read-only", "x"}));
  const auto has = [&](const std::string& setting) {
    const auto at = std::ranges::find(launched.argv, setting);
    return at != launched.argv.end() && *(at - 1) == "-c";
  };
  EXPECT_TRUE(has(R"(sandbox_mode="danger-full-access")"));
  EXPECT_TRUE(has(
      R"(hooks.Stop=[{hooks=[{type="command",command="/usr/bin/nd7 hook codex",timeout=30}]}])"));
  const std::string trust = *std::ranges::find_if(
      launched.argv, [](const std::string& word) { return word.starts_with("hooks.state={"); });
  for (const HookEvent& event : hook_events(AgentKind::codex)) {
    EXPECT_NE(trust.find("\"/<session-flags>/config.toml:" + codex_event_key(event.name) +
                         ":0:0\"={trusted_hash=\"sha256:"),
              std::string::npos);
  }
  // Approvals stay the user's.
  for (const std::string& word : launched.argv) {
    EXPECT_EQ(word.find("approval"), std::string::npos);
    EXPECT_EQ(word.find("bypass"), std::string::npos);
  }
}

TEST(LaunchCodex, DoesNotBringInstalledHooksAgain) {
  LaunchInput installed = input({"codex"});
  installed.hooks_installed = true;
  for (const std::string& word : launch(AgentKind::codex, installed).argv) {
    EXPECT_FALSE(word.starts_with("hooks.")) << word;
  }
  // Unless the user's configuration, which trusts them, is left out.
  installed.argv = {"codex", "exec", "--ignore-user-config", "x"};
  EXPECT_TRUE(std::ranges::any_of(launch(AgentKind::codex, installed).argv,
                                  [](const auto& word) { return word.starts_with("hooks."); }));
}

TEST(LaunchCodex, QuotesItsOwnPathForTheShell) {
  LaunchInput odd = input({"codex"});
  odd.nd7 = "/home/a b/nd7";
  const Launch launched = launch(AgentKind::codex, odd);
  EXPECT_TRUE(std::ranges::any_of(launched.argv, [](const std::string& word) {
    return word.find(R"(command="'/home/a b/nd7' hook codex")") != std::string::npos;
  }));
}

TEST(LaunchGeneric, ChangesNothing) {
  const Words argv = {"make", "-j2"};
  const Launch launched = launch(AgentKind::none, input(argv));
  EXPECT_EQ(launched.argv, argv);
  EXPECT_TRUE(launched.env.empty());
}

TEST(HookAnswer, ExactJsonForEventsThatTakeContext) {
  EXPECT_EQ(
      hook_answer(AgentKind::claude, "PreToolUse", "refused \"x\""),
      R"({"hookSpecificOutput":{"hookEventName":"PreToolUse","additionalContext":"nd7: refused \"x\""}})");
  EXPECT_EQ(
      hook_answer(AgentKind::codex, "PostToolUse", "nd7: a\nb"),
      R"({"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"nd7: a\nb"}})");
  EXPECT_NE(hook_answer(AgentKind::codex, "SessionStart", "x"), "");
  EXPECT_NE(hook_answer(AgentKind::codex, "UserPromptSubmit", "x"), "");
  EXPECT_NE(hook_answer(AgentKind::claude, "PostToolUseFailure", "x"), "");
}

TEST(HookAnswer, NothingWhereTheAgentTakesNone) {
  for (const char* event :
       {"Stop", "SessionEnd", "SubagentStop", "PermissionRequest", "Unknown", ""}) {
    EXPECT_EQ(hook_answer(AgentKind::claude, event, "x"), "");
    EXPECT_EQ(hook_answer(AgentKind::codex, event, "x"), "");
  }
  EXPECT_EQ(hook_answer(AgentKind::codex, "PostToolUseFailure", "x"), "");
  EXPECT_EQ(hook_answer(AgentKind::claude, "PreToolUse", ""), "");
  EXPECT_EQ(hook_answer(AgentKind::none, "PreToolUse", "x"), "");
}

TEST(HookAnswer, StaysBelowTwoKilobytesAndWhole) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "\u20ac";
  const std::string answer = hook_answer(AgentKind::claude, "PreToolUse", text);
  EXPECT_LT(answer.size(), 2048U);
  EXPECT_TRUE(scan_json_object(answer));
  EXPECT_NE(answer.find("nd7 show"), std::string::npos);
}

} // namespace
} // namespace nd7
