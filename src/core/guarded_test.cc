#include "core/guarded.h"

#include <gtest/gtest.h>

#include "core/policy.h"

namespace nd7 {
namespace {

WriteInput usual(std::string agent = "claude") {
  WriteInput in;
  in.homes = {"/home/u"};
  in.project = "/home/u/p";
  in.claude_dir = "/home/u/.claude";
  in.claude_json = "/home/u/.claude.json";
  in.codex_dir = "/home/u/.codex";
  in.agent = std::move(agent);
  in.uid = 1000;
  in.tmp = "/tmp/nd7-1000/s";
  in.cache = "/home/u/.cache/nd7/k";
  in.own_places = {"/home/u/.local/state/nd7"};
  in.program_files = {"/home/u/p/node_modules/.bin/claude"};
  in.agent_commands = {"/home/u/.claude/statusline.sh"};
  return in;
}

Verdict write(const WriteInput& in, const std::string& path, bool made_by_session = false) {
  Policy policy;
  policy.home = "/home/u";
  policy.project = in.project;
  policy.rules = write_rules(in);
  FileAction action;
  action.access = Access::write;
  action.path = path;
  action.made_by_session = made_by_session;
  return decide(policy, action);
}

TEST(WriteRules, OrdinaryWorkIsAllowed) {
  for (const char* path :
       {"/home/u/p/src/a.c", "/home/u/p/.git/index.lock", "/home/u/p/.git/hooks/pre-commit.sample",
        "/home/u/p/.git/modules/lib/x/hooks/update.sample", "/home/u/p/.git/refs/heads/config",
        "/home/u/p/Makefile", "/home/u/p/.github/workflows/ci.yml",
        "/home/u/p/.pre-commit-config.yaml", "/home/u/p/CLAUDE.md", "/home/u/p/config",
        "/home/u/p/hooks/x", "/tmp/nd7-1000/s/x", "/home/u/.cache/nd7/k/npm/x",
        "/home/u/.claude/projects/p/s.jsonl", "/home/u/.claude.json",
        "/home/u/.claude.json.tmp.12ab", "/home/u/.claude.json.lock"})
    EXPECT_TRUE(write(usual(), path).allowed()) << path;
}

TEST(WriteRules, NeverMeansNoCommandOpensIt) {
  for (const char* path :
       {"/home/u/.local/state/nd7/sessions/x/events.ndjson", "/home/u/p/node_modules/.bin/claude",
        "/home/u/.claude/statusline.sh", "/home/u/p/.nd7.toml", "/home/u/p/.claude/settings.json",
        "/home/u/p/.claude/settings.local.json", "/home/u/p/.codex/config.toml",
        "/home/u/p/.codex/rules/x", "/home/u/.codex/hooks.json",
        "/home/u/.claude/settings.local.json"}) {
    const Verdict verdict = write(usual(), path);
    EXPECT_EQ(verdict.decision, Decision::deny) << path;
    EXPECT_TRUE(verdict.open_with.empty()) << path;
  }
}

TEST(WriteRules, WhatRunsLaterOutsideIsGuarded) {
  for (const char* path : {".git/hooks/pre-commit",
                           "vendor/y/.git/hooks/post-checkout",
                           ".GIT/Hooks/pre-commit",
                           ".git/modules/x/hooks/post-checkout",
                           ".git/modules/libs/a/b/hooks/post-checkout",
                           ".git/modules/a/modules/libs/b/c/info/attributes",
                           ".git/info/attributes",
                           ".git/objects/info/alternates",
                           ".git/modules/a/b/c/objects/info/alternates",
                           ".git/commondir",
                           ".envrc",
                           "sub/.envrc",
                           ".mcp.json",
                           ".vscode/tasks.json",
                           "a/b/.vscode/settings.json",
                           ".idea/runConfigurations/x.xml",
                           "x.code-workspace",
                           ".devcontainer/devcontainer.json",
                           ".claude/skills/s/SKILL.md",
                           "sub/.claude/settings.json",
                           "sub/.claude/settings.local.json",
                           "sub/.codex/config.toml",
                           "sub/.codex/hooks.json"}) {
    const Verdict verdict = write(usual(), std::string("/home/u/p/") + path);
    EXPECT_EQ(verdict.decision, Decision::deny) << path;
    EXPECT_FALSE(verdict.open_with.empty()) << path;
  }
  for (const char* path : {"/home/u/.claude/skills/x/SKILL.md", "/home/u/.claude/agents/a.md",
                           "/home/u/.claude/commands/c.md", "/home/u/.claude/plugins/p/x"})
    EXPECT_EQ(write(usual(), path).decision, Decision::deny) << path;
  for (const char* path : {"/home/u/.codex/rules/default.rules", "/home/u/.codex/work.config.toml",
                           "/home/u/.codex/managed_config.toml", "/home/u/.codex/agents/a.toml"})
    EXPECT_EQ(write(usual("codex"), path).decision, Decision::deny) << path;
}

TEST(WriteRules, SettingsThatMustBeWrittenAreJudged) {
  auto judge = [](const char* agent, const char* path) {
    const Verdict verdict = write(usual(agent), path);
    return verdict.decision == Decision::judge ? verdict.judge : Judge::none;
  };
  EXPECT_EQ(judge("claude", "/home/u/.claude/settings.json"), Judge::claude_settings);
  EXPECT_EQ(judge("codex", "/home/u/.codex/config.toml"), Judge::codex_config);
  for (const char* path :
       {"/home/u/p/.git/config", "/home/u/p/.git/config.worktree", "/home/u/p/sub/.git/config",
        "/home/u/p/.git/modules/a/config", "/home/u/p/.git/modules/libs/a/b/config",
        "/home/u/p/.git/worktrees/w/config.worktree"})
    EXPECT_EQ(judge("claude", path), Judge::git_config) << path;
  EXPECT_EQ(judge("claude", "/home/u/p/sub/.git"), Judge::git_pointer);
}

TEST(WriteRules, WhatOtherSessionsReadOnlyItsMakerMayChange) {
  for (const char* path :
       {"/home/u/.claude/shell-snapshots/a.sh", "/home/u/.claude/sessions/1.json",
        "/home/u/.claude/session-env/s/x", "/tmp/claude-1000/d/tasks/x", "/tmp/x", "/var/tmp/x",
        "/dev/shm/x", "/tmp/cc-socks-1000/1.sock"}) {
    EXPECT_FALSE(write(usual(), path).allowed()) << path;
    EXPECT_TRUE(write(usual(), path, true).allowed()) << path;
  }
  EXPECT_FALSE(write(usual("codex"), "/home/u/.codex/shell_snapshots/x").allowed());
}

TEST(WriteRules, OneAgentsStateIsNotTheOthers) {
  EXPECT_FALSE(write(usual("claude"), "/home/u/.codex/state_5.sqlite").allowed());
  EXPECT_TRUE(write(usual("codex"), "/home/u/.codex/state_5.sqlite").allowed());
  EXPECT_FALSE(write(usual("codex"), "/home/u/.claude/projects/x").allowed());
  EXPECT_FALSE(write(usual("none"), "/home/u/.claude/projects/x").allowed());
}

TEST(WriteRules, WithMovedStateTheUsualPlacesStayProtected) {
  WriteInput in = usual("codex");
  in.codex_dir = "/home/u/p/.home/.codex"; // in the project
  EXPECT_EQ(write(in, "/home/u/p/.home/.codex/config.toml").decision, Decision::judge);
  EXPECT_TRUE(write(in, "/home/u/p/.home/.codex/state_5.sqlite").allowed());
  EXPECT_TRUE(write(in, "/home/u/p/.home/.codex/hooks.json").open_with.empty());
  EXPECT_FALSE(write(in, "/home/u/.codex/state_5.sqlite").allowed());
}

TEST(GuardRules, HoldBelowTheirScope) {
  Policy policy;
  policy.rules = guard_rules("/home/u/data");
  Rule grant;
  grant.effect = Effect::allow_write;
  grant.path = "/home/u/data";
  grant.origin = Origin::live;
  policy.rules.push_back(grant);
  FileAction action;
  action.access = Access::write;
  action.path = "/home/u/data/x";
  EXPECT_TRUE(decide(policy, action).allowed());
  action.path = "/home/u/data/r/.git/hooks/pre-commit";
  EXPECT_FALSE(decide(policy, action).allowed());
}

TEST(GuardTable, EveryRowSaysWhy) {
  for (const GuardRow& row : guard_table()) {
    EXPECT_FALSE(row.reason.empty()) << row.suffix;
    EXPECT_FALSE(row.suffix.starts_with('/')) << row.suffix;
    EXPECT_EQ(row.effect == Effect::judged, row.judge != Judge::none) << row.suffix;
  }
}

} // namespace
} // namespace nd7
