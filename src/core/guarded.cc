#include "core/guarded.h"

#include <array>

namespace nd7 {
namespace {

constexpr std::array rows = {
    // git: what git itself executes or follows. Ordinary work needs its configuration, which is
    // judged by its keys; sample hooks are inert.
    GuardRow{Effect::guarded, ".git/hooks/*", "git runs it outside"},
    GuardRow{Effect::allow_write, ".git/hooks/*.sample", "inert sample hooks"},
    GuardRow{Effect::guarded, ".git/info/attributes", "names programs that git runs on files"},
    GuardRow{Effect::guarded, ".git/objects/info/alternates", "leads git to other directories"},
    GuardRow{Effect::guarded, ".git/commondir", "leads git to another directory"},
    GuardRow{Effect::judged, ".git/config", "git's configuration", Judge::git_config},
    GuardRow{Effect::judged, ".git/config.worktree", "git's configuration", Judge::git_config},
    GuardRow{Effect::judged, ".git/worktrees/*/config.worktree", "git's configuration",
             Judge::git_config},
    GuardRow{Effect::judged, ".git", "leads git to its directory", Judge::git_pointer},
    // Shells and environment tools, run by entering the directory.
    GuardRow{Effect::guarded, ".envrc", "direnv runs it"},
    GuardRow{Effect::guarded, ".mise.toml", "mise runs it"},
    GuardRow{Effect::guarded, "mise.toml", "mise runs it"},
    GuardRow{Effect::guarded, ".mise/config.toml", "mise runs it"},
    GuardRow{Effect::guarded, ".config/mise/config.toml", "mise runs it"},
    // Editors.
    GuardRow{Effect::guarded, ".vscode/tasks.json", "editors run its tasks"},
    GuardRow{Effect::guarded, ".vscode/launch.json", "editors run what it names"},
    GuardRow{Effect::guarded, ".vscode/settings.json", "names programs that editors run"},
    GuardRow{Effect::guarded, ".vscode/mcp.json", "editors start the servers it names"},
    GuardRow{Effect::guarded, ".vscode/extensions.json", "recommends programs to install"},
    GuardRow{Effect::guarded, ".idea/runConfigurations/*", "IDEs run what it names"},
    GuardRow{Effect::guarded, ".idea/workspace.xml", "IDEs run what it names"},
    GuardRow{Effect::guarded, ".idea/externalDependencies.xml", "IDEs run what it names"},
    GuardRow{Effect::guarded, ".zed/tasks.json", "editors run its tasks"},
    GuardRow{Effect::guarded, ".zed/settings.json", "names programs that editors run"},
    GuardRow{Effect::guarded, "*.code-workspace", "names programs that editors run"},
    GuardRow{Effect::guarded, ".exrc", "editors run it"},
    GuardRow{Effect::guarded, ".nvim.lua", "editors run it"},
    GuardRow{Effect::guarded, ".dir-locals.el", "editors run it"},
    GuardRow{Effect::guarded, ".devcontainer/devcontainer.json", "runs commands on the host"},
    GuardRow{Effect::guarded, ".devcontainer.json", "runs commands on the host"},
    // Agents: what they start or obey by themselves, outside too.
    GuardRow{Effect::guarded, ".mcp.json", "agents start the servers it names"},
    GuardRow{Effect::guarded, ".cursor/mcp.json", "agents start the servers it names"},
    GuardRow{Effect::guarded, ".gemini/settings.json", "names programs that agents run"},
    GuardRow{Effect::guarded, ".claude/skills/*", "agents run its commands"},
    GuardRow{Effect::guarded, ".claude/agents/*", "agents obey it"},
    GuardRow{Effect::guarded, ".claude/commands/*", "agents run its commands"},
    GuardRow{Effect::guarded, ".claude/plugins/*", "agents run it"},
    GuardRow{Effect::guarded, ".claude/hooks/*", "agents run it"},
    // Below the project somebody may start an agent another time.
    GuardRow{Effect::guarded, ".claude/settings.json", "decides hooks and sandbox"},
    GuardRow{Effect::guarded, ".claude/settings.local.json", "decides hooks and sandbox"},
    GuardRow{Effect::guarded, ".codex/config.toml", "decides hooks and sandbox"},
    GuardRow{Effect::guarded, ".codex/hooks.json", "decides hooks"},
};

// A submodule's git directory lies below .git/modules under its name, which is a path; one inside
// of it has "modules" once more. So the rows are written for this many components between.
constexpr std::size_t module_depth_max = 8;
constexpr std::array module_rows = {
    GuardRow{Effect::guarded, "hooks/*", "git runs it outside"},
    GuardRow{Effect::allow_write, "hooks/*.sample", "inert sample hooks"},
    GuardRow{Effect::guarded, "info/attributes", "names programs that git runs on files"},
    GuardRow{Effect::guarded, "objects/info/alternates", "leads git to other directories"},
    GuardRow{Effect::judged, "config", "git's configuration", Judge::git_config},
    GuardRow{Effect::judged, "config.worktree", "git's configuration", Judge::git_config},
};

Rule rule(Effect effect, Shape shape, std::string path, std::string reason, std::string scope = {},
          Judge judge = Judge::none) {
  Rule out;
  out.effect = effect;
  out.shape = shape;
  out.path = std::move(path);
  out.scope = std::move(scope);
  out.reason = std::move(reason);
  out.judge = judge;
  return out;
}

} // namespace

std::span<const GuardRow> guard_table() {
  return rows;
}

std::vector<Rule> guard_rules(const std::string& scope) {
  std::vector<Rule> out;
  const auto add = [&](const GuardRow& row, const std::string& before) {
    out.push_back(rule(row.effect, Shape::suffix, before + std::string(row.suffix),
                       std::string(row.reason), scope, row.judge));
  };
  for (const GuardRow& row : rows) add(row, "");
  std::string modules = ".git/modules/";
  for (std::size_t depth = 0; depth < module_depth_max; ++depth) {
    modules += "*/";
    for (const GuardRow& row : module_rows) add(row, modules);
  }
  return out;
}

std::vector<Rule> write_rules(const WriteInput& in) {
  std::vector<Rule> out;
  const auto add = [&](Effect effect, Shape shape, const std::string& path, const char* reason,
                       Judge judge = Judge::none) {
    if (!path.empty()) out.push_back(rule(effect, shape, path, reason, {}, judge));
  };
  // Never.
  for (const std::string& place : in.own_places)
    add(Effect::never_read, Shape::subtree, place, "nd7's own records and rules");
  for (const std::string& file : in.program_files)
    add(Effect::never_write, Shape::exact, file, "the running program");
  for (const std::string& tree : in.program_trees)
    add(Effect::never_write, Shape::subtree, tree, "the running program");
  for (const std::string& file : in.agent_commands)
    add(Effect::never_write, Shape::exact, file, "the agent's settings run it");
  const std::string& p = in.project;
  add(Effect::never_write, Shape::exact, p + "/.nd7.toml", "nd7's rules for this project");
  add(Effect::never_write, Shape::exact, p + "/.claude/settings.json", "decides hooks and sandbox");
  add(Effect::never_write, Shape::exact, p + "/.claude/settings.local.json",
      "decides hooks and sandbox, also by \"don't ask again\"");
  add(Effect::never_write, Shape::subtree, p + "/.codex", "decides hooks and sandbox");
  // The agents' settings, wherever they lie; the home's places hold too when a variable moves them.
  std::vector<std::string> claude = {in.claude_dir}, codex = {in.codex_dir};
  for (const std::string& home : in.homes) {
    claude.push_back(home + "/.claude");
    codex.push_back(home + "/.codex");
  }
  for (const std::string& dir : claude) {
    add(Effect::judged, Shape::exact, dir + "/settings.json", "decides hooks and sandbox",
        Judge::claude_settings);
    add(Effect::never_write, Shape::exact, dir + "/settings.local.json",
        "decides hooks and sandbox");
    for (const char* part :
         {"/plugins", "/skills", "/agents", "/commands", "/hooks", "/managed-settings.json"})
      add(Effect::guarded, Shape::subtree, dir + part, "agents run it, outside too");
  }
  for (const std::string& dir : codex) {
    add(Effect::judged, Shape::exact, dir + "/config.toml", "decides hooks and sandbox",
        Judge::codex_config);
    add(Effect::never_write, Shape::exact, dir + "/hooks.json", "decides hooks");
    add(Effect::never_write, Shape::exact, dir + "/managed_config.toml",
        "decides hooks and sandbox");
    for (const char* part : {"/rules", "/prompts", "/plugins", "/agents"})
      add(Effect::guarded, Shape::subtree, dir + part, "agents obey it, outside too");
    // `codex -p NAME` reads NAME.config.toml: hooks and sandbox once more.
    if (dir.empty()) continue;
    out.push_back(
        rule(Effect::guarded, Shape::suffix, "*.config.toml", "decides hooks and sandbox", dir));
  }
  for (Rule& guard : guard_rules(p)) out.push_back(std::move(guard));
  // Allowed.
  add(Effect::allow_write, Shape::subtree, p, "the project");
  add(Effect::allow_write, Shape::subtree, in.tmp, "private temporary files");
  add(Effect::allow_write, Shape::subtree, in.cache, "private caches of package managers");
  if (in.agent == "claude") {
    add(Effect::allow_write, Shape::subtree, in.claude_dir, "the agent's state");
    add(Effect::allow_write, Shape::exact, in.claude_json, "the agent's state");
    // It is written beside and renamed, and locked by a directory.
    const std::size_t slash = in.claude_json.rfind('/');
    const std::string dir = in.claude_json.substr(0, slash);
    const std::string leaf = in.claude_json.substr(slash + 1);
    for (const char* tail :
         {".tmp.*", ".lock", ".lock.*", ".backup", ".backup.*", ".corrupted.*"}) {
      Rule sibling =
          rule(Effect::allow_write, Shape::glob, "/" + leaf + tail, "the agent's state", dir);
      if (auto glob = Glob::parse(sibling.path))
        sibling.compiled = std::make_shared<const Glob>(std::move(*glob));
      out.push_back(std::move(sibling));
    }
    for (const char* part : {"/shell-snapshots", "/session-env", "/sessions"})
      add(Effect::own_write, Shape::below, in.claude_dir + part, "other sessions run or read it");
  }
  if (in.agent == "codex") {
    add(Effect::allow_write, Shape::subtree, in.codex_dir, "the agent's state");
    add(Effect::own_write, Shape::below, in.codex_dir + "/shell_snapshots",
        "other sessions run or read it");
  }
  // Shared places: what the session itself made.
  for (const char* place : {"/tmp", "/var/tmp", "/dev/shm"})
    add(Effect::own_write, Shape::subtree, place, "what this session made there");
  const std::string uid = std::to_string(in.uid);
  for (const std::string& place :
       {"/tmp/claude-" + uid, std::string("/tmp/cc-socks"), "/tmp/cc-socks-" + uid})
    add(Effect::own_write, Shape::below, place, "what this session made there");
  return out;
}

} // namespace nd7
