#include "agents/codex_trust.h"

#include <gtest/gtest.h>

namespace nd7 {
namespace {

const std::string source = "/home/u/.codex/hooks.json";

std::vector<CodexHook> hooks() {
  return {{.event = "PreToolUse",
           .command = "/usr/bin/nd7 hook codex",
           .timeout_s = 30,
           .source = source},
          {.event = "SessionEnd",
           .command = "/usr/bin/nd7 hook codex",
           .timeout_s = 3,
           .source = source}};
}

std::string edited(std::string_view text, bool exists = true,
                   const std::vector<CodexHook>& with = hooks()) {
  const auto result = edit_codex_trust(text, exists, source, with);
  EXPECT_TRUE(result) << result.error().text;
  return result.value_or("");
}

TEST(CodexTrust, KeysAndHashes) {
  EXPECT_EQ(codex_event_key("UserPromptSubmit"), "user_prompt_submit");
  EXPECT_EQ(codex_event_key("Stop"), "stop");
  EXPECT_EQ(codex_hook_key(hooks().front()), source + ":pre_tool_use:0:0");
  // What the client itself computed for this hook (hooks/list of 0.171.0).
  EXPECT_EQ(codex_hook_hash(
                {.event = "PreToolUse", .command = "/usr/bin/nd7 hook codex", .timeout_s = 30}),
            "sha256:e147e66d36adbfce9e9e96e9631a15e3df973dc6c65ba0238e291ca4ac6dad72");
}

TEST(CodexTrust, TheClientsClampsCount) {
  CodexHook hook{.event = "SessionEnd", .command = "x", .timeout_s = 3};
  const std::string three = codex_hook_hash(hook);
  hook.timeout_s = 600;
  EXPECT_EQ(codex_hook_hash(hook), three);
  hook.event = "Stop";
  hook.timeout_s = 3;
  EXPECT_NE(codex_hook_hash(hook), three);
}

TEST(CodexTrust, RoundTripIsByteForByte) {
  for (const char* text : {"", "\n", "model = \"x\"", "model = \"x\"\n", "model = \"x\"\n\n\n",
                           "# note\r\n[a]\r\nb = 1\r\n",
                           "[hooks.state.\"/else:stop:0:0\"]\ntrusted_hash = \"sha256:00\"\n",
                           "[projects.\"/p\"]\ntrust_level = \"trusted\"\n"}) {
    SCOPED_TRACE(text);
    const std::string with = edited(text);
    for (const CodexHook& hook : hooks()) {
      EXPECT_EQ(codex_trust(with, hook).value_or(CodexTrust::missing), CodexTrust::trusted) << with;
    }
    EXPECT_EQ(edited(with), with) << "not idempotent";
    EXPECT_EQ(edited(with, true, {}), text);
  }
}

TEST(CodexTrust, KnowsAFileItMade) {
  const std::string made = edited("", false);
  EXPECT_TRUE(made_for_trust(made, source));
  EXPECT_EQ(edited(made), made);
  EXPECT_EQ(edited(made, true, {}), "");
  EXPECT_FALSE(made_for_trust(edited("", true), source));
}

TEST(CodexTrust, TwoSourcesKeepApart) {
  std::vector<CodexHook> project = hooks();
  for (CodexHook& hook : project) hook.source = "/p/.codex/hooks.json";
  const std::string first = edited("a = 1\n");
  const auto both = edit_codex_trust(first, true, "/p/.codex/hooks.json", project);
  ASSERT_TRUE(both);
  const std::string without_user = edited(*both, true, {});
  EXPECT_EQ(codex_trust(without_user, project[0]).value_or(CodexTrust::missing),
            CodexTrust::trusted);
  EXPECT_EQ(codex_trust(without_user, hooks()[0]).value_or(CodexTrust::trusted),
            CodexTrust::missing);
  EXPECT_EQ(edit_codex_trust(without_user, true, "/p/.codex/hooks.json", {}).value_or(""),
            "a = 1\n");
}

TEST(CodexTrust, RecordsOfTheClientAreBroughtUpToDate) {
  const std::string text =
      "[hooks.state.\"" + source + ":pre_tool_use:0:0\"]\ntrusted_hash = \"sha256:0123\"\n";
  EXPECT_EQ(codex_trust(text, hooks()[0]).value_or(CodexTrust::missing), CodexTrust::modified);
  const std::string with = edited(text);
  EXPECT_EQ(codex_trust(with, hooks()[0]).value_or(CodexTrust::missing), CodexTrust::trusted);
  EXPECT_EQ(with.find("0123"), std::string::npos);
}

TEST(CodexTrust, TheUsersSwitchStands) {
  std::string text = edited("");
  const std::string key = "[hooks.state.\"" + source + ":pre_tool_use:0:0\"]\n";
  text.insert(text.find(key) + key.size(), "enabled = false\n");
  EXPECT_EQ(codex_trust(text, hooks()[0]).value_or(CodexTrust::trusted), CodexTrust::disabled);
  EXPECT_EQ(codex_trust(edited(text), hooks()[0]).value_or(CodexTrust::trusted),
            CodexTrust::disabled);
}

TEST(CodexTrust, ForeignTablesBetweenOursStay) {
  std::string text = edited("a = 1\n");
  const std::string foreign = "[hooks.state.\"/else:stop:0:0\"]\ntrusted_hash = \"sha256:00\"\n";
  text.insert(text.rfind("[hooks.state"), foreign);
  EXPECT_EQ(edited(text, true, {}), "a = 1\n" + foreign);
}

TEST(CodexTrust, RefusesWhatDoesNotParse) {
  EXPECT_FALSE(edit_codex_trust("a = ", true, source, hooks()));
  EXPECT_FALSE(edit_codex_trust("a = 1\na = 2\n", true, source, hooks()));
  EXPECT_FALSE(edit_codex_trust("hooks = { state = {} }\n", true, source, hooks()));
  EXPECT_FALSE(codex_trust("]", hooks()[0]));
}

} // namespace
} // namespace nd7
