#include "cli/options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>

#include "cli/command.h"

namespace nd7 {
namespace {

constexpr Option options[] = {
    {"json", 0, nullptr, "print JSON"},
    {"only", 'o', "KIND", "this kind"},
    {"verbose", 'v', nullptr, "more"},
};
const Usage permuting{
    .name = "show", .summary = "s", .arguments = "[ID]", .options = options, .example = "nd7 show"};
const Usage stopping{.name = "run", .summary = "s", .options = options, .stop_at_first = true};

class OptionsTest : public ::testing::Test {
protected:
  std::expected<Arguments, int> parse(const Usage& usage, std::vector<std::string> words) {
    words.insert(words.begin(), usage.name);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::testing::internal::CaptureStderr();
    auto args = parse_options(usage, static_cast<int>(words.size()), argv.data());
    said_ = ::testing::internal::GetCapturedStderr();
    return args;
  }
  std::string said_;
};

using Words = std::vector<std::string>;

TEST_F(OptionsTest, OptionsMayFollowArguments) {
  for (const bool posix : {false, true}) {
    posix ? ::setenv("POSIXLY_CORRECT", "1", 1) : ::unsetenv("POSIXLY_CORRECT");
    const auto args = parse(permuting, {"id", "--only", "a", "-ob", "--only=c", "-v", "--", "-x"});
    ASSERT_TRUE(args);
    EXPECT_EQ(args->rest(), (Words{"id", "-x"}));
    EXPECT_EQ(args->values("only"), (Words{"a", "b", "c"}));
    EXPECT_EQ(args->value("only"), "c");
    EXPECT_TRUE(args->has("verbose"));
    EXPECT_FALSE(args->has("json"));
  }
  ::unsetenv("POSIXLY_CORRECT");
}

TEST_F(OptionsTest, AProgramsOwnOptionsAreItsOwn) {
  auto args = parse(stopping, {"--json", "claude", "--only", "--help"});
  ASSERT_TRUE(args);
  EXPECT_EQ(args->rest(), (Words{"claude", "--only", "--help"}));
  args = parse(stopping, {"--", "--json"});
  ASSERT_TRUE(args);
  EXPECT_EQ(args->rest(), (Words{"--json"}));
  EXPECT_FALSE(args->has("json"));
}

TEST_F(OptionsTest, ErrorsSayWhatIsWrongAndWhereHelpIs) {
  const auto error = [&](const Words& words) {
    auto args = parse(permuting, words);
    EXPECT_FALSE(args);
    EXPECT_EQ(args.error(), 2);
    return said_;
  };
  EXPECT_EQ(error({"--onyl"}),
            "nd7 show: unknown option '--onyl' (did you mean --only?), try nd7 show --help\n");
  EXPECT_EQ(error({"id", "-x"}), "nd7 show: unknown option '-x', try nd7 show --help\n");
  EXPECT_EQ(error({"--only"}),
            "nd7 show: option '--only' needs a value (KIND), try nd7 show --help\n");
  EXPECT_EQ(error({"-o"}), "nd7 show: option '--only' needs a value (KIND), try nd7 show --help\n");
  EXPECT_EQ(error({"--json=1"}), "nd7 show: option '--json' takes no value, try nd7 show --help\n");
  EXPECT_EQ(error({"--\x1b[2K"}).find('\x1b'), std::string::npos);
}

TEST_F(OptionsTest, HelpIsAnAnswer) {
  ::testing::internal::CaptureStdout();
  const auto args = parse(permuting, {"--help"});
  std::fflush(stdout);
  const std::string help = ::testing::internal::GetCapturedStdout();
  ASSERT_FALSE(args);
  EXPECT_EQ(args.error(), 0);
  EXPECT_EQ(help, help_text(permuting));
  for (const char* part :
       {"usage: nd7 show [options] [ID]", "-o, --only KIND", "example:\n  nd7 show"}) {
    EXPECT_NE(help.find(part), std::string::npos) << part;
  }
}

TEST(Closest, FindsTheLikelyOneOnly) {
  const Words names{"run", "show", "verify", "sessions"};
  EXPECT_EQ(closest("verfiy", names), "verify");
  EXPECT_EQ(closest("shwo", names), "show");
  EXPECT_EQ(closest("session", names), "sessions");
  EXPECT_FALSE(closest("zebra", names));
}

TEST(Table, EveryCommandHasItsHelpOnOneLineAndAUniqueName) {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    const Usage& usage = *command.usage;
    names.emplace_back(usage.name);
    const std::string summary = usage.summary;
    EXPECT_FALSE(summary.empty());
    EXPECT_LE(summary.size(), 66u) << usage.name;
    EXPECT_FALSE(summary.ends_with('.')) << usage.name;
    EXPECT_FALSE(std::isupper(static_cast<unsigned char>(summary.front())) != 0) << usage.name;
    EXPECT_NE(std::string(usage.example), "") << usage.name;
    for (const Option& option : usage.options) {
      EXPECT_FALSE(std::string(option.help).ends_with('.')) << usage.name << " " << option.name;
    }
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

} // namespace
} // namespace nd7
