#include "agents/settings_edit.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>

#include "base/json.h"

namespace nd7 {
namespace {

const std::vector<HookGroup> claude_groups = nd7_hook_groups(AgentKind::claude, "/usr/bin/nd7");

std::string added(std::optional<std::string_view> text) {
  const auto result = add_hooks(AgentKind::claude, text, claude_groups);
  EXPECT_TRUE(result) << result.error().text;
  return result.value_or("");
}

void expect_round_trip(const std::string& text) {
  const std::string with = added(text);
  EXPECT_TRUE(scan_json_object(with)) << with;
  const auto found = find_hooks(AgentKind::claude, with);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size(), claude_groups.size()) << with;
  EXPECT_EQ(added(with), with) << "not idempotent";
  const auto without = remove_hooks(AgentKind::claude, with);
  ASSERT_TRUE(without) << without.error().text;
  ASSERT_TRUE(without->has_value()) << with;
  EXPECT_EQ(**without, text) << with;
}

TEST(SettingsEdit, RoundTripOfHandWrittenFiles) {
  for (
      const char* text : {
          "{}",
          "{}\n",
          "{\n}\n",
          "{ }",
          "{\n\n\n}\n",
          "\n{}\n\n",
          "{\r\n}\r\n",
          R"({"a":1})",
          R"({"a":1,"hooks":{}})",
          R"({"hooks":{"Stop":[]}})",
          "{\n  \"model\": \"x\",\n  \"permissions\": {\"allow\": [\"Bash\"]}\n}\n",
          "{\n\t\"model\": \"x\"\n}",
          "{\r\n    \"model\": \"x\"\r\n}\r\n",
          "{\n  \"hooks\": {\n  },\n  \"model\": 1\n}\n",
          "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"say\"}]}]}, "
          "\"z\": [1, 2]}\n",
          "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\n        \"matcher\": \"Bash\",\n"
          "        \"hooks\": []\n      }\n    ],\n    \"Stop\": [ ]\n  }\n}\n",
          // A hook of the user's own that only looks like ours.
          R"({"hooks":{"Stop":[{"hooks":[{"type":"command","command":"/x/nd8","args":["hook","claude"]}]}]}})",
      }) {
    SCOPED_TRACE(text);
    expect_round_trip(text);
  }
}

TEST(SettingsEdit, AFileThatWeMadeIsGoneAfterwards) {
  const std::string made = added(std::nullopt);
  EXPECT_TRUE(scan_json_object(made));
  EXPECT_EQ(added(made), made);
  const auto without = remove_hooks(AgentKind::claude, made);
  ASSERT_TRUE(without);
  EXPECT_FALSE(without->has_value());
}

TEST(SettingsEdit, WhatTheUserAddedLaterStays) {
  std::string text = added(std::nullopt);
  text.replace(text.rfind("\n}"), 2, ",\n  \"model\": \"x\"\n}");
  const auto without = remove_hooks(AgentKind::claude, text);
  ASSERT_TRUE(without && without->has_value());
  EXPECT_EQ(**without, "{\n  \"model\": \"x\"\n}\n");
}

TEST(SettingsEdit, AMovedProgramReplacesItsOldEntries) {
  const std::string old = added("{\"model\": \"x\"}\n");
  const auto moved =
      add_hooks(AgentKind::claude, old, nd7_hook_groups(AgentKind::claude, "/opt/nd7/bin/nd7"));
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->find("/usr/bin/nd7"), std::string::npos);
  const auto found = find_hooks(AgentKind::claude, *moved);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size(), claude_groups.size());
  EXPECT_EQ(nd7_program_of(AgentKind::claude, found->front().text), "/opt/nd7/bin/nd7");
  const auto without = remove_hooks(AgentKind::claude, *moved);
  ASSERT_TRUE(without && without->has_value());
  EXPECT_EQ(**without, "{\"model\": \"x\"}\n");
}

TEST(SettingsEdit, RefusesWhatDoesNotParse) {
  for (const char* text : {"", " ", "[]", "{", "{\"a\":1,}", "{// x\n}", "{\"a\":1,\"a\":2}", "nul",
                           "\xef\xbb\xbf{}", R"({"hooks":[]})", R"({"hooks":{"Stop":{}}})"}) {
    SCOPED_TRACE(text);
    EXPECT_FALSE(add_hooks(AgentKind::claude, text, claude_groups));
  }
}

TEST(SettingsEdit, CodexProgramsWithOddNamesAreFoundAgain) {
  for (const char* program : {"/usr/bin/nd7", "/home/a b/nd7", "/it's/nd7", R"(/back\slash/nd7)"}) {
    const auto groups = nd7_hook_groups(AgentKind::codex, program);
    ASSERT_EQ(groups.size(), 12U);
    for (const HookGroup& group : groups) {
      EXPECT_EQ(nd7_program_of(AgentKind::codex, group.text), program);
    }
  }
}

TEST(SettingsEdit, NeverRegistersWhatMustNotBe) {
  for (const HookGroup& group : claude_groups) {
    EXPECT_NE(group.event, "WorktreeCreate");
    EXPECT_NE(group.event, "MessageDisplay");
  }
  EXPECT_EQ(claude_groups.size(), 32U);
}

// --- any layout that JSON allows -----------------------------------------------------------------

std::string space() {
  static const std::array<const char*, 7> kinds = {"", "", " ", "\n", "\n\n", "\t", "\n    "};
  return kinds[*rc::gen::inRange<std::size_t>(0, kinds.size())];
}

std::string list(int depth);
std::string value(int depth) {
  switch (*rc::gen::inRange(0, depth > 2 ? 3 : 5)) {
  case 0:
    return "null";
  case 1:
    return "-1.50e+3";
  case 2:
    return R"("a\"]},{[ \u00e9")";
  case 3:
    return list(depth + 1);
  default: {
    std::string out = "{" + space();
    const int count = *rc::gen::inRange(0, 3);
    for (int i = 0; i < count; ++i) {
      out += (i > 0 ? "," : "") + space() + "\"k" + std::to_string(i) + "\"" + space() + ":" +
             space() + value(depth + 1) + space();
    }
    return out + "}";
  }
  }
}

std::string list(int depth) {
  std::string out = "[" + space();
  const int count = *rc::gen::inRange(0, 3);
  for (int i = 0; i < count; ++i) out += (i > 0 ? "," : "") + space() + value(depth + 1) + space();
  return out + "]";
}

std::string document() {
  std::string hooks = "{" + space();
  const std::array<const char*, 3> names = {"Stop", "PreToolUse", "Mine"};
  bool first = true;
  for (const char* name : names) {
    if (*rc::gen::inRange(0, 2) == 0) continue;
    hooks += (first ? "" : ",") + space() + "\"" + name + "\"" + space() + ":" + space() + list(1) +
             space();
    first = false;
  }
  hooks += "}";
  std::vector<std::string> members;
  if (*rc::gen::inRange(0, 2) == 0) members.push_back("\"a\"" + space() + ":" + value(0));
  if (*rc::gen::inRange(0, 3) != 0) members.push_back("\"hooks\":" + space() + hooks);
  if (*rc::gen::inRange(0, 2) == 0) members.push_back("\"z\":" + value(0));
  std::string out = space() + "{" + space();
  for (std::size_t i = 0; i < members.size(); ++i) {
    out += (i > 0 ? "," : "") + space() + members[i] + space();
  }
  return out + "}" + space();
}

RC_GTEST_PROP(SettingsEdit, RemovalRestoresEveryByte, ()) {
  const std::string text = document();
  RC_PRE(static_cast<bool>(scan_json_object(text)));
  const auto with = add_hooks(AgentKind::claude, text, claude_groups);
  RC_ASSERT(static_cast<bool>(with));
  RC_ASSERT(static_cast<bool>(scan_json_object(*with)));
  RC_ASSERT(*add_hooks(AgentKind::claude, *with, claude_groups) == *with);
  const auto without = remove_hooks(AgentKind::claude, *with);
  RC_ASSERT(without && without->has_value());
  RC_ASSERT(**without == text);
}

} // namespace
} // namespace nd7
