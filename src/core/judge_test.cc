#include "core/judge.h"

#include <gtest/gtest.h>

namespace nd7 {
namespace {

TEST(Judge, RefusesKindsItDoesNotKnow) {
  EXPECT_FALSE(judge_change(Judge::none, "", "").ok);
  EXPECT_FALSE(judge_change(Judge::git_pointer, "", "gitdir: x\n").ok);
}

TEST(Judge, AsksTheJudgeOfTheKind) {
  EXPECT_TRUE(judge_change(Judge::git_config, "", "[core]\n\tbare = false\n").ok);
  EXPECT_EQ(judge_change(Judge::git_config, "", "[core]\n\thooksPath = x\n").rule,
            "git config core.hooksPath runs programs later outside");
  EXPECT_TRUE(judge_change(Judge::codex_config, "", "").ok);
  EXPECT_EQ(judge_change(Judge::codex_config, "", "sandbox_mode = \"x\"\n").rule,
            "codex config sandbox_mode decides what later sessions run or may do");
  EXPECT_TRUE(judge_change(Judge::claude_settings, "", "{\"model\":\"opus\"}").ok);
  EXPECT_EQ(judge_change(Judge::claude_settings, "", "{\"hooks\":{}}").rule,
            "claude settings hooks decides what later sessions run or may do");
}

TEST(Judge, KeysAreShownOnOnePrintableLine) {
  EXPECT_EQ(printable_key("a.b"), "a.b");
  EXPECT_EQ(printable_key("a\n\x1b[2J\xFF"), "a\\x0a\\x1b[2J\\xff");
  EXPECT_EQ(printable_key(std::string(300, 'a')).size(), 203U);
}

TEST(GitPointer, IsOneLine) {
  std::string target;
  EXPECT_TRUE(git_pointer_target("gitdir: /p/.git/worktrees/a b\n", &target));
  EXPECT_EQ(target, "/p/.git/worktrees/a b");
  EXPECT_TRUE(git_pointer_target("gitdir: ../.git/modules/x\n", &target));
  EXPECT_EQ(target, "../.git/modules/x");
}

TEST(GitPointer, RefusesEverythingElse) {
  std::string target = "as before";
  for (const std::string_view text :
       {std::string_view(""), std::string_view("gitdir: "), std::string_view("gitdir: \n"),
        std::string_view("gitdir: x"), std::string_view("gitdir:x\n"),
        std::string_view("gitdir: x\n\n"), std::string_view("gitdir: x\r\n"),
        std::string_view("gitdir: x\ny\n"), std::string_view(" gitdir: x\n"),
        std::string_view("Gitdir: x\n"), std::string_view("gitdir:  x\n"),
        std::string_view("gitdir: x \n"), std::string_view("gitdir: x\0y\n", 12),
        std::string_view("gitdir: x\ty\n"), std::string_view("\xEF\xBB\xBFgitdir: x\n")})
    EXPECT_FALSE(git_pointer_target(text, &target)) << text;
  EXPECT_FALSE(git_pointer_target("gitdir: " + std::string(4096, 'a') + "\n", &target));
  EXPECT_EQ(target, "as before");
}

} // namespace
} // namespace nd7
