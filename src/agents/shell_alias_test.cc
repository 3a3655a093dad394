#include "agents/shell_alias.h"

#include <gtest/gtest.h>

namespace nd7 {
namespace {

const std::vector<AgentKind> both = {AgentKind::claude, AgentKind::codex};

std::string with(std::string_view text, const std::vector<AgentKind>& kinds, bool exists = true) {
  return edit_aliases(text, exists, {.nd7 = "/usr/bin/nd7", .add = kinds, .remove = {}});
}
std::string without(std::string_view text, const std::vector<AgentKind>& kinds) {
  return edit_aliases(text, true, {.nd7 = "/usr/bin/nd7", .add = {}, .remove = kinds});
}

TEST(ShellAlias, RoundTripIsByteForByte) {
  for (const char* text : {"", "\n", "export A=1", "export A=1\n", "a\n\n\n", "a\r\nb\r\n"}) {
    SCOPED_TRACE(text);
    const std::string added = with(text, both);
    EXPECT_NE(added.find("alias claude='/usr/bin/nd7 run claude'\n"), std::string::npos);
    EXPECT_NE(added.find("alias codex='/usr/bin/nd7 run codex'\n"), std::string::npos);
    EXPECT_EQ(with(added, both), added);
    EXPECT_EQ(without(added, both), text);
    EXPECT_EQ(without(added + "# later\n", both), std::string(text) + "# later\n");
  }
}

TEST(ShellAlias, OneAgentAtATime) {
  const std::string one = with("x\n", {AgentKind::codex});
  EXPECT_EQ(one.find("alias claude="), std::string::npos);
  EXPECT_EQ(with(one, {AgentKind::claude}), with("x\n", both));
  EXPECT_EQ(without(with("x\n", both), {AgentKind::claude}), one);
  EXPECT_EQ(without(one, {AgentKind::codex}), "x\n");
  EXPECT_EQ(without("x\n", both), "x\n");
}

TEST(ShellAlias, KnowsAFileItMade) {
  EXPECT_TRUE(made_for_aliases(with("", both, false)));
  EXPECT_FALSE(made_for_aliases(with("", both, true)));
}

TEST(ShellAlias, QuotesOddPaths) {
  const std::string text =
      edit_aliases("", true, {.nd7 = "/home/a b/nd7", .add = {AgentKind::claude}, .remove = {}});
  EXPECT_NE(text.find(R"(alias claude=''\''/home/a b/nd7'\'' run claude')"), std::string::npos)
      << text;
}

} // namespace
} // namespace nd7
