#include "core/credentials.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "core/policy.h"

namespace nd7 {
namespace {

CredentialInput usual(std::string agent = "claude") {
  CredentialInput input;
  input.homes = {"/home/u"};
  input.agent = std::move(agent);
  return input;
}

bool readable(const Policy& policy, const std::string& path) {
  FileAction action;
  action.path = path;
  return decide(policy, action).allowed();
}

bool readable(const CredentialInput& input, const std::string& path) {
  Policy policy;
  policy.home = "/home/u";
  policy.rules = credential_rules(input);
  return readable(policy, path);
}

TEST(CredentialTable, EveryRowIsRelativeToItsBaseAndSaysWhy) {
  std::set<std::tuple<PlaceBase, PlaceKind, std::string_view>> seen;
  for (const CredentialPlace& row : credential_table()) {
    SCOPED_TRACE(row.path);
    EXPECT_EQ(row.path.starts_with('/'), row.base == PlaceBase::system);
    EXPECT_FALSE(row.path.ends_with('/'));
    EXPECT_EQ(row.path.find(".."), std::string_view::npos);
    EXPECT_EQ(row.path.find("//"), std::string_view::npos);
    EXPECT_FALSE(row.reason.empty());
    EXPECT_TRUE(seen.insert({row.base, row.kind, row.path}).second);
    // Written for the home, a row below an XDG directory would miss the moved one.
    if (row.base == PlaceBase::home) {
      EXPECT_FALSE(row.path.starts_with(".config/"));
      EXPECT_FALSE(row.path.starts_with(".local/share/"));
      EXPECT_FALSE(row.path.starts_with(".cache/"));
    }
  }
}

TEST(CredentialRules, EveryRowBecomesARuleThatHoldsThere) {
  CredentialInput input = usual("none");
  input.is_root = true;
  Policy policy;
  policy.rules = credential_rules(input);
  for (const CredentialPlace& row : credential_table()) {
    if (row.kind == PlaceKind::readable) continue;
    std::string path(row.path);
    std::ranges::replace(path, '*', 'x');
    switch (row.base) {
    case PlaceBase::home:
      path = "/home/u/" + path;
      break;
    case PlaceBase::config:
      path = "/home/u/.config/" + path;
      break;
    case PlaceBase::data:
      path = "/home/u/.local/share/" + path;
      break;
    case PlaceBase::state:
      path = "/home/u/.local/state/" + path;
      break;
    case PlaceBase::cache:
      path = "/home/u/.cache/" + path;
      break;
    case PlaceBase::system:
      break;
    }
    EXPECT_FALSE(readable(policy, path)) << path;
    if (row.kind == PlaceKind::tree) {
      EXPECT_FALSE(readable(policy, path + "/deep/er")) << path;
    }
  }
}

TEST(CredentialRules, RulesAreBuiltInAndGlobsAreCompiled) {
  CredentialInput input = usual();
  input.is_root = true;
  for (const Rule& rule : credential_rules(input)) {
    EXPECT_EQ(rule.origin, Origin::builtin);
    EXPECT_TRUE(rule.effect == Effect::deny_read || rule.effect == Effect::allow_read);
    EXPECT_TRUE(rule.shape != Shape::glob || rule.compiled) << rule.path;
    EXPECT_FALSE(rule.reason.empty());
    EXPECT_TRUE(rule.path.starts_with('/')) << rule.path;
    EXPECT_EQ(rule.shape == Shape::glob, !rule.scope.empty()) << rule.path;
  }
}

TEST(CredentialRules, OfTheSshDirectoryOnlyWhatHoldsNoKeyIsReadable) {
  CredentialInput input = usual();
  for (const char* open : {"known_hosts", "known_hosts.old", "config", "id_rsa.pub",
                           "config.d/work", "authorized_keys"})
    EXPECT_TRUE(readable(input, std::string("/home/u/.ssh/") + open)) << open;
  for (const char* shut : {"id_ed25519", "work", "id_rsa~", "id_rsa.pub/x/../k", "cm-socket",
                           "keys/deep/id", "id_rsa.bak", ".id_rsa.swp"})
    EXPECT_EQ(readable(input, std::string("/home/u/.ssh/") + shut),
              std::string_view(shut).starts_with("id_rsa.pub"))
        << shut;
  EXPECT_FALSE(readable(input, "/home/u/.ssh"));
}

TEST(CredentialRules, PublicPartsOfGnupgStayReadable) {
  CredentialInput input = usual();
  EXPECT_TRUE(readable(input, "/home/u/.gnupg/pubring.kbx"));
  EXPECT_TRUE(readable(input, "/home/u/.gnupg/trustdb.gpg"));
  EXPECT_FALSE(readable(input, "/home/u/.gnupg/private-keys-v1.d/AB.key"));
  EXPECT_FALSE(readable(input, "/home/u/.gnupg/secring.gpg"));
  EXPECT_FALSE(readable(input, "/home/u/.gnupg/random_seed"));
}

TEST(CredentialRules, CopiesBesideAFileAreCovered) {
  CredentialInput input = usual();
  for (const char* copy : {".netrc", ".netrc~", ".netrc.bak", "#.netrc#", ".#.netrc", ".netrc.swp",
                           ".npmrc.1234567", ".zsh_history.LOCK", ".bash_history-01234.tmp"})
    EXPECT_FALSE(readable(input, std::string("/home/u/") + copy)) << copy;
  EXPECT_TRUE(readable(input, "/home/u/project/.netrc"));
  EXPECT_TRUE(readable(input, "/home/u/netrc"));
}

TEST(CredentialRules, OrdinaryPlacesStayReadable) {
  CredentialInput input = usual();
  input.is_root = true;
  for (const char* open : {"/home/u",
                           "/home/u/.bashrc",
                           "/home/u/.gitconfig",
                           "/home/u/.config/git/config",
                           "/home/u/.config/gh/config.yml",
                           "/home/u/.cargo/bin/cargo",
                           "/home/u/.cargo/config.toml",
                           "/home/u/.docker/cli-plugins/docker-buildx",
                           "/home/u/.local/bin/x",
                           "/home/u/.config/Code/User/settings.json",
                           "/home/u/.terraform.d/plugins/p",
                           "/home/u/.m2/repository/a.jar",
                           "/home/u/.gradle/wrapper/dists/g",
                           "/home/u/.android/sdk/x",
                           "/home/u/.cache/huggingface/hub/model",
                           "/home/u/.cache/pip/http/x",
                           "/etc/passwd",
                           "/etc/ssh/ssh_config",
                           "/etc/ssh/ssh_host_rsa_key.pub",
                           "/etc/ssl/certs/ca.pem",
                           "/home/u/.local/share/bash-completion/x",
                           "/home/u/.vim/vimrc",
                           "/home/u/.nvm/x",
                           "/home/u/.config/nvim/init.lua",
                           "/home/u/snapshots/x",
                           "/usr/bin/env"})
    EXPECT_TRUE(readable(input, open)) << open;
}

TEST(CredentialRules, OnlyTheRunningAgentsStateIsOpen) {
  EXPECT_TRUE(readable(usual("claude"), "/home/u/.claude/.credentials.json"));
  EXPECT_TRUE(readable(usual("claude"), "/home/u/.claude.json"));
  EXPECT_FALSE(readable(usual("claude"), "/home/u/.codex/auth.json"));
  EXPECT_TRUE(readable(usual("codex"), "/home/u/.codex/auth.json"));
  EXPECT_FALSE(readable(usual("codex"), "/home/u/.claude/.credentials.json"));
  EXPECT_FALSE(readable(usual("codex"), "/home/u/.claude.json"));
  for (const char* agent : {"claude", "codex", "none"})
    EXPECT_FALSE(readable(usual(agent), "/home/u/.gemini/oauth_creds.json"));
  EXPECT_FALSE(readable(usual("none"), "/home/u/.claude/.credentials.json"));
  EXPECT_FALSE(readable(usual("none"), "/home/u/.codex/auth.json"));
}

TEST(CredentialRules, MovedStateIsFollowed) {
  CredentialInput input = usual("claude");
  input.claude_dir = "/home/u/.config/Claude/alt"; // inside a closed place
  input.codex_dir = "/srv/codex";
  EXPECT_TRUE(readable(input, "/home/u/.config/Claude/alt/.credentials.json"));
  EXPECT_FALSE(readable(input, "/home/u/.config/Claude/other"));
  EXPECT_FALSE(readable(input, "/srv/codex/auth.json"));
  // Then the usual place belongs to another account.
  EXPECT_FALSE(readable(input, "/home/u/.claude/.credentials.json"));
  EXPECT_TRUE(readable(input, "/home/u/.claude/CLAUDE.md"));
}

TEST(CredentialRules, BothHomesAndMovedXdgDirectoriesAreCovered) {
  CredentialInput input = usual();
  input.homes = {"/tmp/h", "/home/u"};
  input.config_dirs = {"/srv/config"};
  input.data_dirs = {"/srv/data"};
  input.cache_dirs = {"/srv/cache"};
  input.state_dirs = {"/srv/state"};
  for (const char* shut :
       {"/tmp/h/.aws/credentials", "/home/u/.aws/credentials", "/srv/config/gh/hosts.yml",
        "/home/u/.config/gh/hosts.yml", "/tmp/h/.config/gh/hosts.yml", "/srv/data/keyrings/login",
        "/srv/cache/huggingface/token", "/srv/state/bash/history"})
    EXPECT_FALSE(readable(input, shut)) << shut;
}

TEST(CredentialRules, VariablesThatMoveSecretsAreFollowed) {
  CredentialInput input = usual();
  input.environment = {{"KUBECONFIG", "/srv/a:/srv/b"},   {"GNUPGHOME", "/srv/gnupg/"},
                       {"HISTFILE", "/srv/with*star"},    {"KRB5CCNAME", "FILE:/srv/ticket"},
                       {"PGPASSFILE", "relative"},        {"NETRC", "/dev/null"},
                       {"PASSWORD_STORE_DIR", "/home/u"}, {"AZURE_CONFIG_DIR", "/"}};
  for (const char* shut : {"/srv/a", "/srv/b", "/srv/a~", "/srv/gnupg/private-keys-v1.d/x",
                           "/srv/with*star", "/srv/ticket"})
    EXPECT_FALSE(readable(input, shut)) << shut;
  for (const char* open :
       {"/srv/withXstar", "/srv/gnupg/pubring.kbx", "/dev/null", "/home/u/x", "/x"})
    EXPECT_TRUE(readable(input, open)) << open;
}

TEST(CredentialRules, RootAlsoMissesTheMachinesOwn) {
  CredentialInput input = usual();
  input.homes = {"/root"};
  EXPECT_TRUE(readable(input, "/etc/shadow")); // the kernel refuses it to ordinary users
  input.is_root = true;
  for (const char* shut : {"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/ssl/private/k",
                           "/etc/ssh/ssh_host_ed25519_key", "/root/.ssh/id_rsa"})
    EXPECT_FALSE(readable(input, shut)) << shut;
  EXPECT_TRUE(readable(input, "/root/project/x"));
  input.homes = {"/home/u"};
  EXPECT_FALSE(readable(input, "/root/project/x"));
}

TEST(CredentialRules, SnapshotsOfTheHomeAreClosed) {
  CredentialInput input = usual();
  for (const char* shut : {"/.snapshots/1/snapshot/home/u/.ssh/id", "/home/.zfs/snapshot/a/u/x",
                           "/home/u/.snapshots/1", "/timeshift/snapshots/x"})
    EXPECT_FALSE(readable(input, shut)) << shut;
}

TEST(CredentialRules, UnusableHomesGiveNoRules) {
  CredentialInput input = usual();
  for (const char* home : {"", "/", "relative"}) {
    input.homes = {home};
    EXPECT_TRUE(readable(input, "/srv/x")) << home;
  }
}

TEST(RuleDepth, CountsComponentsOfScopeAndPath) {
  Rule rule;
  rule.path = "/home/u/.ssh";
  EXPECT_EQ(rule_depth(rule), 3u);
  rule.scope = "/home/u/.ssh";
  rule.path = "/*.pub";
  EXPECT_EQ(rule_depth(rule), 4u);
}

} // namespace
} // namespace nd7
