#include "base/bytes.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/json.h"

namespace nd7 {
namespace {

TEST(Hex, HasOneForm) {
  EXPECT_EQ(hex("\x01\xab"), "01ab");
  EXPECT_EQ(unhex("01ab"), "\x01\xab");
  EXPECT_FALSE(unhex("01AB"));
  EXPECT_FALSE(unhex("0"));
  EXPECT_FALSE(unhex("0g"));
}

TEST(Visible, ShowsControlCharactersAndSendsNone) {
  EXPECT_EQ(visible("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(visible("\x1b]52;c;x\x07"), "\\x1b]52;c;x\\x07");
  EXPECT_EQ(visible("\xc2\x9b"
                    "2J"),
            "\\u009b2J");                                        // C1: CSI in one character
  EXPECT_EQ(visible("a\xe2\x80\xaetxt.exe"), "a\\u202etxt.exe"); // right-to-left override
  EXPECT_EQ(visible("a\xe2\x80\x8b"
                    "b"),
            "a\\u200bb");                                // zero width space
  EXPECT_EQ(visible("\xf3\xa0\x81\x81"), "\\U000e0041"); // tag character
  EXPECT_EQ(visible("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(visible("Größe 漢字 🙂"), "Größe 漢字 🙂");
}

TEST(Columns, CountsWideAndCombining) {
  EXPECT_EQ(columns("abc"), 3u);
  EXPECT_EQ(columns("漢字"), 4u);
  EXPECT_EQ(columns("e\xcc\x81"), 1u);
  EXPECT_EQ(shorten("abcdef", 4), "abc…");
  EXPECT_EQ(shorten("abcd", 4), "abcd");
  EXPECT_EQ(shorten("漢字漢字", 4), "漢…");
}

RC_GTEST_PROP(VisibleProperty, IsAlwaysOneLineOfPrintableUtf8, ()) {
  const auto bytes = *rc::gen::arbitrary<std::string>();
  const std::string shown = visible(bytes);
  RC_ASSERT(is_utf8(shown));
  for (const char c : shown) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  RC_ASSERT(visible(shown) == shown);
  RC_ASSERT(columns(shorten(shown, 10)) <= 10);
}

} // namespace
} // namespace nd7
