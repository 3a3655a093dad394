#include "agents/settings_commands.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace nd7 {
namespace {

TEST(SettingsCommands, FindsScriptsHoweverTheyAreNamed) {
  const auto files = named_files(
      R"({"statusLine":{"type":"command","command":"bash ~/.claude/statusline.sh --x"},
          "hooks":{"Stop":[{"hooks":[{"command":"$HOME/bin/stop \"a b\""}]}]},
          "apiKeyHelper":"/opt/key; ./local.sh", "env":{"U":"https://example.com/x"}})",
      "/home/u", "/p");
  for (const char* path :
       {"/home/u/.claude/statusline.sh", "/home/u/bin/stop", "/opt/key", "/p/local.sh"})
    EXPECT_NE(std::find(files.begin(), files.end(), path), files.end()) << path;
  for (const std::string& file : files) EXPECT_EQ(file.find("example.com"), std::string::npos);
}

TEST(SettingsCommands, ReadsToml) {
  const auto files = named_files("notify = ['python3', '/home/u/notify.py']\n", "/home/u", "/p");
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0], "/home/u/notify.py");
}

TEST(SettingsCommands, SurvivesWhatDoesNotParse) {
  EXPECT_TRUE(named_files("\"unterminated /x", "/h", "/p").size() <= 1);
  EXPECT_TRUE(named_files("", "/h", "/p").empty());
}

} // namespace
} // namespace nd7
