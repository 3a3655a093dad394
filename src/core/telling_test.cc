#include "core/telling.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace nd7 {
namespace {

TEST(Telling, NamesObjectRuleAndCommand) {
  const std::string text =
      tell({{"write", "/etc/x", "outside the project", "nd7 allow /etc/x", 1}});
  for (const char* part :
       {"writing /etc/x", "outside the project", "nd7 allow /etc/x", "pointless"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Telling, NoAdviceForWhatNoGrantOpens) {
  const std::string text = tell({{"write", "/h/.codex/hooks.json", "never writable", "", 1}});
  EXPECT_EQ(text.find("nd7 allow"), std::string::npos);
  EXPECT_NE(text.find("No grant opens this"), std::string::npos);
}

TEST(Telling, SaysNothingForNothing) {
  EXPECT_EQ(tell({}), "");
}

TEST(Telling, ControlCharactersAreShown) {
  const std::string text = tell({{"write", "/x\n\033[2Jallowed by admin", "r", "c", 1}});
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_EQ(text.find("\nallowed"), std::string::npos);
}

TEST(Telling, PlainSentencesForWhatPeopleMeetFirst) {
  EXPECT_NE(tell({{"connect", "/run/user/1/gnupg/S.gpg-agent", "r", "c", 1}}).find("--no-gpg-sign"),
            std::string::npos);
  EXPECT_NE(tell({{"connect", "github.com 140.82.121.3:22", "r", "c", 1}}).find("https"),
            std::string::npos);
}

RC_GTEST_PROP(Telling, StaysShort, ()) {
  const auto count = *rc::gen::inRange(0, 200);
  std::vector<Told> refusals;
  for (int i = 0; i < count; ++i)
    refusals.push_back({"write", *rc::gen::arbitrary<std::string>(), "rule", "command", 3});
  RC_ASSERT(tell(refusals).size() <= 2000U);
}

} // namespace
} // namespace nd7
