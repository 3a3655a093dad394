// save_grant: one entry more, every other byte as it was.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/policy_text.h"

namespace nd7 {
namespace {

std::string saved(std::string_view text, GrantKind kind, std::string value) {
  Result<std::string> out = save_grant(text, "policy.toml", {kind, std::move(value)});
  return out ? *out : "error: " + out.error().text;
}

struct Case {
  const char* before;
  const char* after;
};

TEST(SaveGrant, KeepsTheFormOfTheFile) {
  const Case cases[] = {
      {"", "[files]\nwrite = [\"~/x\"]\n"},
      {"# mine\n[files]\nwrite = [\"~/data\"] # besides\n",
       "# mine\n[files]\nwrite = [\"~/data\", \"~/x\"] # besides\n"},
      {"[files]\nwrite = []", "[files]\nwrite = [\"~/x\"]"},
      {"[files]\nwrite = [ \"a\", ]\n", "[files]\nwrite = [ \"a\", \"~/x\", ]\n"},
      {"[files]\nwrite = [\n  \"a\",  # first\n  \"b\"   # last\n]\n",
       "[files]\nwrite = [\n  \"a\",  # first\n  \"b\",   # last\n  \"~/x\"\n]\n"},
      {"[files]\nwrite = [\n\t\"a\",\n\t\"b\", # last, with a comma\n]\n",
       "[files]\nwrite = [\n\t\"a\",\n\t\"b\", # last, with a comma\n\t\"~/x\",\n]\n"},
      {"files.write = [\n  \"a\" ]\n", "files.write = [\n  \"a\", \"~/x\" ]\n"},
      {"\xEF\xBB\xBF[files] # c\n", "\xEF\xBB\xBF[files] # c\nwrite = [\"~/x\"]\n"},
      {"[files]\r\nwrite = [\r\n  \"a\",\r\n]\r\n",
       "[files]\r\nwrite = [\r\n  \"a\",\r\n  \"~/x\",\r\n]\r\n"},
      {"[files] # of mine\nread = [\"a\"]\n[env]\n",
       "[files] # of mine\nwrite = [\"~/x\"]\nread = [\"a\"]\n[env]\n"},
      {"[files]\r\nread = []\r\n", "[files]\r\nwrite = [\"~/x\"]\r\nread = []\r\n"},
      {"[env]\npass = [\"A\"]\n", "[env]\npass = [\"A\"]\n\n[files]\nwrite = [\"~/x\"]\n"},
      {"[env]\npass = [\"A\"]", "[env]\npass = [\"A\"]\n\n[files]\nwrite = [\"~/x\"]\n"},
      {"files.read = [\"a\"]\n[env]\n", "files.write = [\"~/x\"]\nfiles.read = [\"a\"]\n[env]\n"},
      {"files.write = [\"ü\", \"é\"]\n", "files.write = [\"ü\", \"é\", \"~/x\"]\n"},
      {"\xEF\xBB\xBF"
       "files.write = [\"a\"]\n",
       "\xEF\xBB\xBF"
       "files.write = [\"a\", \"~/x\"]\n"},
      {"[files]\nwrite = ['a', '''b''']\n", "[files]\nwrite = ['a', '''b''', \"~/x\"]\n"},
      {"[files]\nwrite = [\"~/x\"]\n", "[files]\nwrite = [\"~/x\"]\n"}, // there already
      {"[profile.p]\nfiles.write = [\"~/x\"]\n",
       "[profile.p]\nfiles.write = [\"~/x\"]\n\n[files]\nwrite = [\"~/x\"]\n"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(saved(c.before, GrantKind::write, "~/x"), c.after) << c.before;
}

TEST(SaveGrant, OtherKinds) {
  EXPECT_EQ(saved("", GrantKind::port, "5432"), "[network]\nports = [5432]\n");
  EXPECT_EQ(saved("network.ports = [1]\n", GrantKind::port, "2"), "network.ports = [1, 2]\n");
  EXPECT_EQ(saved("", GrantKind::listen, "[::]:80"), "[network]\nlisten = [\"[::]:80\"]\n");
  EXPECT_EQ(saved("network.hosts = [\"a.test\"]\n", GrantKind::host, "b.test:22"),
            "network.hosts = [\"a.test\", \"b.test:22\"]\n");
  EXPECT_EQ(saved("", GrantKind::deny_write, "*.lock"), "[files]\ndeny_write = [\"*.lock\"]\n");
  EXPECT_EQ(saved("", GrantKind::write, "/a\"b\\c"), "[files]\nwrite = [\"/a\\\"b\\\\c\"]\n");
}

TEST(SaveGrant, RefusesWhatWouldMeanSomethingElse) {
  EXPECT_TRUE(
      saved("", GrantKind::host, "a.test").starts_with("error: policy.toml: network.hosts is"));
  EXPECT_TRUE(saved("[fiels]", GrantKind::write, "~/x").starts_with("error: policy.toml:1:2:"));
  EXPECT_TRUE(saved("", GrantKind::write, "~x").starts_with("error: "));
  EXPECT_TRUE(saved("", GrantKind::port, "0").starts_with("error: "));
  EXPECT_TRUE(saved("", GrantKind::port, "1, 2").starts_with("error: "));
  EXPECT_TRUE(saved("", GrantKind::port, "1]\n[env").starts_with("error: "));
  Result<std::string> inline_table =
      save_grant("files = { read = [] }\n", "policy.toml", {GrantKind::write, "~/x"});
  ASSERT_FALSE(inline_table.has_value());
  EXPECT_EQ(inline_table.error().hint, "write it by hand: files.write = [\"~/x\"]");
}

TEST(SaveGrant, IsNotFooledByAHeaderInsideAString) {
  std::string text = "[profile.p]\nfiles.read = ['''\n[files]\nx''']\n";
  std::string out = saved(text, GrantKind::write, "~/x");
  EXPECT_EQ(out, text + "\n[files]\nwrite = [\"~/x\"]\n");
}

// A list in one of the forms that people write.
std::string list_text() {
  std::string gap =
      *rc::gen::element<std::string>("", " ", "\n", "\n  ", "\r\n\t", " # c ü, ]\n  ");
  std::string out = "[" + gap;
  int count = *rc::gen::inRange(0, 4);
  for (int i = 0; i < count; ++i) {
    out += *rc::gen::element<std::string>("\"a\"", "'b'", "\"ü\\n\"", "'''c'''", "\"]\"", "\"#\"");
    out += *rc::gen::element<std::string>("", " ");
    if (i + 1 < count || *rc::gen::arbitrary<bool>()) out += ",";
    out += *rc::gen::element<std::string>("", " ", "\n", "\n  ", " # last\n", " # last, ü\r\n");
  }
  return out + "]";
}

RC_GTEST_PROP(SaveGrant, AddsTheEntryAndTakesNothingAway, ()) {
  std::string end = *rc::gen::element<std::string>("\n", "\r\n", " # c\n");
  auto maybe = [](const std::string& text) { return *rc::gen::arbitrary<bool>() ? text : ""; };
  std::string text = maybe("\xEF\xBB\xBF") + maybe("# mine\n");
  bool dotted = *rc::gen::arbitrary<bool>();
  if (dotted)
    text +=
        maybe("files.read = " + list_text() + end) + maybe("files.write = " + list_text() + end);
  text += maybe("[env]" + end + "pass = ['X']" + end);
  if (!dotted && *rc::gen::arbitrary<bool>())
    text += "[files]" + end + maybe("read = " + list_text() + end) +
            maybe("write = " + list_text() + end);
  text += maybe("[profile.p]" + end + "files.write = " + list_text() + end);
  text += maybe("[network]" + end + "ports = [1]");
  Result<PolicyFile> before = parse_policy(text, "p");
  RC_PRE(before.has_value());
  RC_LOG() << text;
  Result<std::string> out = save_grant(text, "p", {GrantKind::write, "~/new"});
  RC_ASSERT(out.has_value());
  Result<PolicyFile> after = parse_policy(*out, "p");
  RC_ASSERT(after.has_value());
  RC_ASSERT(after->general.write.size() == before->general.write.size() + 1);
  RC_ASSERT(after->general.write.back().text == "~/new");
  // The old text is still there: all its bytes, in order.
  std::size_t at = 0;
  for (char c : *out)
    if (at < text.size() && text[at] == c) ++at;
  RC_ASSERT(at == text.size());
}

} // namespace
} // namespace nd7
