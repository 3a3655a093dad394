#include "view/text.h"

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace nd7 {
namespace {

Row row(Voice voice, std::string kind, std::string text) {
  Row r;
  r.voice = voice;
  r.kind = std::move(kind);
  r.text = std::move(text);
  return r;
}

// Without the clock, which depends on the time zone.
std::string after_time(const std::string& text) {
  return text.substr(8);
}

TEST(Text, ClaimsFactsAndRefusalsHaveDifferentMarks) {
  EXPECT_EQ(after_time(row_text(row(Voice::intent, "prompt", "hi"), {})), " > prompt   hi\n");
  EXPECT_EQ(after_time(row_text(row(Voice::effect, "write", "/x"), {})), " * write    /x\n");
  EXPECT_EQ(after_time(row_text(row(Voice::nd7, "grant", "x"), {})), " # grant    x\n");
  Row call = row(Voice::intent, "tool_call", "Bash: make");
  call.below.push_back(row(Voice::effect, "exec", "make"));
  EXPECT_NE(row_text(call, {}).find("   * exec     make\n"), std::string::npos);
}

TEST(Text, ARefusalTellsRuleAndCommandWhole) {
  Row refused = row(Voice::effect, "refused", "write /" + std::string(100, 'a'));
  refused.rule = "files: outside the project";
  refused.open_with = "nd7 allow /" + std::string(100, 'a');
  const std::string text = row_text(refused, {.columns = 80});
  EXPECT_NE(text.find("! REFUSED  write /aaa"), std::string::npos);
  EXPECT_NE(text.find("by rule: files: outside the project\n"), std::string::npos);
  EXPECT_NE(text.find("allow it: " + refused.open_with + "\n"), std::string::npos);
  EXPECT_EQ(text.find("…"), std::string::npos);
  refused.open_with.clear();
  EXPECT_NE(row_text(refused, {}).find("no grant opens this\n"), std::string::npos);
}

TEST(Text, LinesKeepToTheColumns) {
  for (const std::size_t width : {60u, 80u, 200u}) {
    Row r = row(Voice::effect, "write", "/" + std::string(500, 'x'));
    r.below.push_back(row(Voice::effect, "exec", std::string(500, 'y')));
    Row fold;
    for (int i = 0; i < 40; ++i) fold.folded["kind" + std::to_string(i)] = 1;
    for (const Row& one : {r, fold}) {
      std::string text = row_text(one, {.columns = width});
      while (!text.empty()) {
        const std::size_t end = text.find('\n');
        EXPECT_LE(columns(text.substr(0, end)), width);
        text.erase(0, end + 1);
      }
    }
  }
}

TEST(Text, NothingLoggedReachesTheTerminalAsItIs) {
  const std::string evil = "\x1b]52;c;eA==\x07\x1b[2K\r\n\xe2\x80\xae\xc2\x9b\xff";
  Row r = row(Voice::effect, "refused", evil);
  r.rule = r.open_with = evil;
  r.notes = r.details = {evil};
  r.call = evil;
  Row unknown = row(Voice::other, evil, evil);
  Row fold;
  fold.folded[evil] = 2;
  for (const Row& one : {r, unknown, fold}) {
    const std::string text = row_text(one, {.verbose = true});
    for (const char* bad : {"\x1b", "\x07", "\r", "\xe2\x80\xae", "\xc2\x9b", "\xff"}) {
      EXPECT_EQ(text.find(bad), std::string::npos) << text;
    }
  }
}

TEST(Text, ColourIsOnlyThereWhenAskedFor) {
  const Row r = row(Voice::intent, "prompt", "hi");
  EXPECT_EQ(row_text(r, {}).find('\x1b'), std::string::npos);
  EXPECT_NE(row_text(r, {.color = true}).find("\x1b[36m"), std::string::npos);
}

} // namespace
} // namespace nd7
