#include "cli/agent_doctor.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "agents/codex_trust.h"
#include "agents/settings_edit.h"
#include "cli/agent_files.h"

namespace nd7 {
namespace {

namespace fs = std::filesystem;

// A home of its own, and an environment that leads there.
class AgentDoctor : public testing::Test {
protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "nd7-doctor-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = fs::canonical(name);
    for (const char* folder : {"home/.claude", "home/.codex", "p/.claude", "bin"}) {
      fs::create_directories(root_ / folder);
    }
    for (const char* variable :
         {"CLAUDE_CONFIG_DIR", "CODEX_HOME", "CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE"}) {
      ::unsetenv(variable);
    }
    path_ = ::getenv("PATH");
    ::setenv("HOME", (root_ / "home").c_str(), 1);
    ::setenv("PATH", (root_ / "bin").c_str(), 1);
    nd7_ = root_ / "bin" / "nd7";
    write("bin/nd7", "#!/bin/sh\n");
    fs::permissions(nd7_, fs::perms::owner_all);
    places_ = {.home = root_ / "home",
               .passwd_home = root_ / "home",
               .state = {},
               .config = {},
               .cache = {},
               .runtime = {}};
  }
  void TearDown() override {
    ::setenv("PATH", path_.c_str(), 1);
    fs::remove_all(root_);
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(root_ / name) << text;
  }
  void install() {
    write("home/.claude/settings.json",
          add_hooks(AgentKind::claude, std::nullopt, nd7_hook_groups(AgentKind::claude, nd7_))
              .value());
    const std::string source = root_ / "home/.codex/hooks.json";
    const std::string hooks =
        add_hooks(AgentKind::codex, std::nullopt, nd7_hook_groups(AgentKind::codex, nd7_)).value();
    write("home/.codex/hooks.json", hooks);
    trust_ = edit_codex_trust("", false, source, codex_hooks_in(hooks, source)).value();
    write("home/.codex/config.toml", trust_);
  }
  std::vector<Finding> findings() {
    return check_agents(places_, {.nd7 = nd7_, .project = root_ / "p", .ask_client = false});
  }
  // The bad ones, as text; each must name a repair.
  std::string complaints() {
    std::string text;
    for (const Finding& finding : findings()) {
      EXPECT_EQ(finding.repair.empty(), finding.good) << finding.text;
      if (!finding.good) text += finding.text + "\n";
    }
    return text;
  }
  bool installed(AgentKind kind) { return hooks_installed(kind, places_, nd7_); }

  fs::path root_;
  std::string nd7_;
  std::string path_;
  std::string trust_;
  Places places_;
};

TEST_F(AgentDoctor, NothingInstalled) {
  EXPECT_NE(complaints().find("claude: no hooks are registered"), std::string::npos);
  EXPECT_NE(complaints().find("codex: no hooks are registered"), std::string::npos);
  EXPECT_FALSE(installed(AgentKind::claude));
  EXPECT_FALSE(installed(AgentKind::codex));
}

TEST_F(AgentDoctor, AllWell) {
  install();
  EXPECT_EQ(complaints(), "");
  EXPECT_EQ(findings().size(), 2U);
  EXPECT_TRUE(installed(AgentKind::claude));
  EXPECT_TRUE(installed(AgentKind::codex));
  EXPECT_FALSE(installed(AgentKind::none));
}

TEST_F(AgentDoctor, SaysNothingOfAgentsThatAreNotHere) {
  fs::remove_all(root_ / "home/.claude");
  fs::remove_all(root_ / "home/.codex");
  EXPECT_TRUE(findings().empty());
}

TEST_F(AgentDoctor, SwitchedOffByAFile) {
  install();
  write("p/.claude/settings.json", R"({"disableAllHooks": true})");
  EXPECT_NE(complaints().find("disableAllHooks"), std::string::npos);
}

TEST_F(AgentDoctor, SwitchedOffByTheEnvironment) {
  install();
  ::setenv("CLAUDE_CODE_SIMPLE", "1", 1);
  EXPECT_NE(complaints().find("CLAUDE_CODE_SIMPLE is set"), std::string::npos);
  ::unsetenv("CLAUDE_CODE_SIMPLE");
}

TEST_F(AgentDoctor, ASettingsFileThatDoesNotParse) {
  install();
  write("home/.claude/settings.json", "{");
  EXPECT_NE(complaints().find("does not parse"), std::string::npos);
  EXPECT_FALSE(installed(AgentKind::claude));
}

TEST_F(AgentDoctor, AMissingEventAndAnotherProgram) {
  install();
  auto groups = nd7_hook_groups(AgentKind::claude, (root_ / "old" / "nd7").string());
  std::erase_if(groups, [](const HookGroup& group) { return group.event == "Stop"; });
  write("home/.claude/settings.json", add_hooks(AgentKind::claude, std::nullopt, groups).value());
  EXPECT_NE(complaints().find("hooks are missing for Stop"), std::string::npos);
  EXPECT_NE(complaints().find("cannot be run"), std::string::npos);
  EXPECT_FALSE(installed(AgentKind::claude));
}

TEST_F(AgentDoctor, CodexWithoutTrust) {
  install();
  write("home/.codex/config.toml", "model = \"x\"\n");
  EXPECT_NE(complaints().find("does not trust its hooks"), std::string::npos);
  EXPECT_FALSE(installed(AgentKind::codex));
}

TEST_F(AgentDoctor, CodexHooksSwitchedOff) {
  install();
  write("home/.codex/config.toml", trust_ + "[features]\nhooks = false\n");
  EXPECT_NE(complaints().find("switches the feature `hooks` off"), std::string::npos);
  EXPECT_FALSE(installed(AgentKind::codex));
  std::string one_off = trust_;
  one_off.insert(one_off.find("trusted_hash"), "enabled = false\n");
  write("home/.codex/config.toml", one_off);
  EXPECT_NE(complaints().find("hooks are switched off in"), std::string::npos);
  EXPECT_FALSE(installed(AgentKind::codex));
}

} // namespace
} // namespace nd7
