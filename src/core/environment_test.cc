#include "core/environment.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace nd7 {
namespace {

bool has(const std::vector<std::string>& list, const std::string& what) {
  return std::find(list.begin(), list.end(), what) != list.end();
}

TEST(Environment, WithholdsWhatLooksLikeACredential) {
  for (const char* name :
       {"GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "NPM_TOKEN", "MY_API_KEY",
        "OPENAI_API_KEY", "MYTOKEN", "PGPASSWORD", "github_token", "DATABASE_URL", "SSH_AUTH_SOCK",
        "DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "ND7_DISABLE", "TMUX"})
    EXPECT_NE(withheld_reason(name), nullptr) << name;
  for (const char* name : {"PATH", "HOME", "LANG", "TERM", "EDITOR", "CC", "XAUTHORS", "KEYBOARD",
                           "PASSAGE", "MONKEY", "PATTERN", "COMPASS", "PWD", "OLDPWD", "MANPATH"})
    EXPECT_EQ(withheld_reason(name), nullptr) << name;
}

TEST(Environment, PassesTheAgentsOwnAndWhatIsGranted) {
  const EnvironmentPlan plan = plan_environment({
      .variables = {"ANTHROPIC_API_KEY=k", "GITHUB_TOKEN=t", "NPM_TOKEN=n", "PATH=/bin"},
      .agent_patterns = {"ANTHROPIC_*"},
      .granted = {"GITHUB_TOKEN"},
      .added = {"TMPDIR=/tmp/x", "PATH=/usr/bin"},
  });
  EXPECT_TRUE(has(plan.variables, "ANTHROPIC_API_KEY=k"));
  EXPECT_TRUE(has(plan.variables, "GITHUB_TOKEN=t"));
  EXPECT_TRUE(has(plan.variables, "TMPDIR=/tmp/x"));
  EXPECT_TRUE(has(plan.variables, "PATH=/usr/bin"));
  EXPECT_FALSE(has(plan.variables, "PATH=/bin"));
  EXPECT_TRUE(has(plan.withheld, "NPM_TOKEN"));
  for (const std::string& name : plan.withheld) EXPECT_EQ(name.find('='), std::string::npos);
  for (const std::string& name : plan.passed) EXPECT_EQ(name.find('='), std::string::npos);
}

TEST(Environment, MalformedEntriesAreDropped) {
  const EnvironmentPlan plan = plan_environment({{"novalue", "=x", ""}, {}, {}, {}});
  EXPECT_TRUE(plan.variables.empty());
}

} // namespace
} // namespace nd7
