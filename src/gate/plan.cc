#include "gate/plan.h"

#include <algorithm>
#include <cstdlib>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/json.h"
#include "core/chain.h"
#include "core/credentials.h"
#include "core/guarded.h"
#include "core/judge.h"
#include "gate/control_server.h"
#include "gate/exec_trees.h"
#include "gate/plan_policy.h"
#include "gate/syscalls.h"
#include "os/files.h"
#include "os/resolve.h"

namespace nd7 {
namespace {

std::string variable(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& entry : environment)
    if (entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  return {};
}

// A path as the person typed it: ~, relative, absolute.
std::string person_path(const PlanInput& input, const std::string& text) {
  std::string path = text;
  if (path == "~" || path.starts_with("~/")) path = input.places.home + path.substr(1);
  return os::resolved_as_far(os::lexical_join(input.cwd, path));
}

struct Facts {
  std::string home, project, claude_dir, codex_dir, tmp, cache;
  bool root = false;
};

Result<Facts> find_facts(const PlanInput& input) {
  Facts out;
  out.root = geteuid() == 0;
  out.home = input.places.home;
  out.project = os::real_path(input.cwd);
  if (out.project.empty()) return os_error(input.cwd);
  const auto agent_dir = [&](const char* name, const char* otherwise) {
    const std::string given = variable(input.environment, name);
    return given.empty() ? os::resolved_as_far(out.home + otherwise)
                         : os::resolved_as_far(os::lexical_join(input.cwd, given));
  };
  out.claude_dir = agent_dir("CLAUDE_CONFIG_DIR", "/.claude");
  out.codex_dir = agent_dir("CODEX_HOME", "/.codex");
  for (const std::string& dir : {out.claude_dir, out.codex_dir})
    if (os::is_below(out.home, dir) || os::is_below(out.project, dir))
      return fail(
          fmt::format("{} as an agent's state directory would open everything below it", dir),
          "set CLAUDE_CONFIG_DIR and CODEX_HOME to directories of their own");
  // The private temporary directory: refused if somebody else got the name first.
  const std::string base = fmt::format("/tmp/nd7-{}", geteuid());
  if (auto ok = os::make_private_directory(base); !ok) return std::unexpected(ok.error());
  out.tmp = base + "/" + input.id;
  if (auto ok = os::make_private_directory(out.tmp); !ok) return std::unexpected(ok.error());
  out.cache = input.places.cache + "/" + blake3_hex(out.project).substr(0, 16);
  if (auto ok = os::make_private_directory(input.places.cache); !ok)
    return std::unexpected(ok.error());
  if (auto ok = os::make_private_directory(out.cache); !ok) return std::unexpected(ok.error());
  return out;
}

Result<> check_project(const PlanInput& input, const Facts& facts,
                       const std::vector<Rule>& credentials) {
  if (input.options.whole_home) return {};
  const auto refuse = [&](const std::string& why) {
    return fail(fmt::format("{} {}", facts.project, why),
                "start in a project's directory, or say --whole-home if it is meant");
  };
  if (facts.project == "/") return refuse("is the root of everything");
  for (const std::string& home : {facts.home, input.places.passwd_home})
    if (!home.empty() && os::is_below(home, facts.project))
      return refuse(home == facts.project ? "is the home directory" : "holds the home directory");
  for (const Rule& rule : credentials)
    if (rule.effect == Effect::deny_read && rule.shape != Shape::glob &&
        rule.shape != Shape::suffix && os::is_below(rule.path, facts.project)) {
      struct stat st {};
      if (lstat(rule.path.c_str(), &st) == 0)
        return refuse(fmt::format("holds {} ({})", rule.path, rule.reason));
    }
  return {};
}

WriteInput write_input(const PlanInput& input, const Facts& facts) {
  WriteInput out;
  out.homes = {facts.home};
  if (!input.places.passwd_home.empty() && input.places.passwd_home != facts.home)
    out.homes.push_back(input.places.passwd_home);
  out.project = facts.project;
  out.claude_dir = facts.claude_dir;
  out.claude_json = variable(input.environment, "CLAUDE_CONFIG_DIR").empty()
                        ? facts.home + "/.claude.json"
                        : facts.claude_dir + "/.claude.json";
  out.codex_dir = facts.codex_dir;
  out.agent = input.agent;
  out.uid = geteuid();
  out.tmp = facts.tmp;
  out.cache = facts.cache;
  for (const std::string& own : {input.places.state, input.places.config, input.places.runtime})
    out.own_places.push_back(os::resolved_as_far(own));
  out.program_files = input.program.files;
  out.program_trees = input.program.packages;
  for (const std::string& package : input.program.packages) {
    // A launcher's platform packages lie beside it: node_modules/@scope/name-linux-x64.
    const std::size_t slash = package.rfind('/');
    auto names = os::list_directory(package.substr(0, slash));
    for (const std::string& name : names ? *names : std::vector<std::string>{})
      if (name.starts_with(package.substr(slash + 1)))
        out.program_trees.push_back(package.substr(0, slash + 1) + name);
  }
  out.program_files.push_back(input.nd7);
  out.agent_commands = input.agent_commands;
  return out;
}

CredentialInput credential_input(const PlanInput& input, const Facts& facts) {
  CredentialInput out;
  out.homes = {facts.home};
  if (!input.places.passwd_home.empty() && input.places.passwd_home != facts.home)
    out.homes.push_back(input.places.passwd_home);
  const auto directory = [&](const char* name, std::vector<std::string>& into) {
    if (const std::string given = variable(input.environment, name); given.starts_with('/'))
      into.push_back(os::resolved_as_far(given));
  };
  directory("XDG_CONFIG_HOME", out.config_dirs);
  directory("XDG_DATA_HOME", out.data_dirs);
  directory("XDG_STATE_HOME", out.state_dirs);
  directory("XDG_CACHE_HOME", out.cache_dirs);
  out.agent = input.agent;
  out.claude_dir = facts.claude_dir;
  out.codex_dir = facts.codex_dir;
  out.is_root = facts.root;
  for (const std::string& entry : input.environment) {
    const std::size_t equal = entry.find('=');
    if (equal != std::string::npos)
      out.environment.emplace_back(entry.substr(0, equal), entry.substr(equal + 1));
  }
  return out;
}

// The package managers' caches, private to the project: shared ones cannot be poisoned.
std::vector<std::string> cache_variables(const std::string& cache) {
  return {
      "npm_config_cache=" + cache + "/npm",      "npm_config_store_dir=" + cache + "/pnpm",
      "YARN_CACHE_FOLDER=" + cache + "/yarn",    "YARN_GLOBAL_FOLDER=" + cache + "/yarn-berry",
      "BUN_INSTALL_CACHE_DIR=" + cache + "/bun", "PIP_CACHE_DIR=" + cache + "/pip",
      "UV_CACHE_DIR=" + cache + "/uv",           "CARGO_HOME=" + cache + "/cargo",
      "GOMODCACHE=" + cache + "/go-mod",         "GOCACHE=" + cache + "/go-build",
      "GRADLE_USER_HOME=" + cache + "/gradle",
  };
}

// A linked git worktree as project: its own git directory, and of the common one the parts that
// ordinary work writes. Hooks, configuration and the other worktrees stay closed.
void add_worktree(const std::string& project, Policy& policy) {
  auto pointer = os::read_file(project + "/.git", 8192);
  std::string target;
  if (!pointer || !git_pointer_target(*pointer, &target)) return;
  const std::string own = os::real_path(os::lexical_join(project, target));
  if (own.empty()) return;
  auto common_text = os::read_file(own + "/commondir", 8192);
  if (!common_text) return;
  while (common_text->ends_with('\n')) common_text->pop_back();
  const std::string common = os::real_path(os::lexical_join(own, *common_text));
  // Both must say so: the git directory names this worktree back.
  auto back = os::read_file(own + "/gitdir", 8192);
  if (common.empty() || !back || !back->starts_with(project + "/.git")) return;
  const auto grant = [&](const std::string& path, Shape shape) {
    Rule rule;
    rule.effect = Effect::allow_write;
    rule.shape = shape;
    rule.path = path;
    rule.reason = "the worktree's git directory";
    policy.rules.push_back(std::move(rule));
  };
  grant(own, Shape::subtree);
  for (const char* part : {"/objects", "/refs", "/logs", "/rr-cache"})
    grant(common + part, Shape::subtree);
  for (const char* part : {"/packed-refs", "/packed-refs.lock", "/packed-refs.new", "/FETCH_HEAD",
                           "/gc.pid", "/gc.pid.lock", "/gc.log", "/gc.log.lock", "/shallow",
                           "/shallow.lock", "/info/refs", "/info/refs.lock", "/config.lock"})
    grant(common + part, Shape::exact);
  for (const std::string& path : {common + "/config", own + "/config.worktree"}) {
    Rule rule;
    rule.effect = Effect::judged;
    rule.shape = Shape::exact;
    rule.path = path;
    rule.judge = Judge::git_config;
    rule.reason = "git's configuration";
    policy.rules.push_back(std::move(rule));
  }
  for (const char* part : {"/commondir", "/gitdir", "/hooks", "/info/attributes"}) {
    Rule rule;
    rule.effect = Effect::guarded;
    rule.path = own + part;
    rule.reason = "leads git elsewhere, or is run by it";
    policy.rules.push_back(std::move(rule));
  }
}

Result<> add_options(const PlanInput& input, Policy& policy) {
  std::uint32_t order = 0;
  const auto add = [&](const char* what, const std::vector<std::string>& values,
                       bool is_path) -> Result<> {
    for (const std::string& value : values) {
      auto changed = change_policy(policy, true, what, is_path ? person_path(input, value) : value,
                                   ++order, Origin::start_option);
      if (!changed) return std::unexpected(changed.error());
      policy = std::move(changed->policy);
    }
    return {};
  };
  const StartOptions& o = input.options;
  for (auto& [what, values, is_path] : {std::tuple{"path", &o.allow, true},
                                        {"read", &o.read, true},
                                        {"host", &o.hosts, false},
                                        {"port", &o.ports, false},
                                        {"listen", &o.listens, false},
                                        {"socket", &o.sockets, true}})
    if (auto ok = add(what, *values, is_path); !ok) return ok;
  policy.only_hosts = policy.only_hosts || o.only_hosts;
  // The agent itself must reach its own service, whatever is named.
  if (policy.only_hosts)
    for (const std::string& host : input.agent_hosts)
      policy.hosts.push_back({host, 443, Origin::builtin});
  return {};
}

// network.dns = "hosts": only allowed names are asked for. Where any host is allowed any name is.
void restrict_names(const Policy& policy, NetworkPlan& network) {
  if (!policy.only_hosts) return;
  for (const HostGrant& host : policy.hosts) network.dns_only_names.push_back(host.name);
  if (policy.hosts.empty()) network.dns_only_names.emplace_back("nothing.invalid"); // empty: any
}

std::string start_body(const PlanInput& input, const Plan& plan, const Facts& facts) {
  JsonWriter body;
  body.text("agent", input.agent)
      .texts("argv", input.argv)
      .path("cwd", input.cwd)
      .path("project", facts.project)
      .text("kernel", input.kernel.release)
      .text("nd7_version", ND7_VERSION)
      .number("uid", static_cast<std::int64_t>(geteuid()))
      .texts("enforced", plan.enforced)
      .texts("not_enforced", plan.not_enforced)
      .raw("rules", rules_json(plan.supervisor.policy))
      .texts("env_passed", plan.environment.passed)
      .texts("env_withheld", plan.environment.withheld);
  return body.finish();
}

} // namespace

Result<Plan> make_plan(const PlanInput& input) {
  const auto blocked = os::obstacles(input.kernel, geteuid() == 0);
  if (!blocked.empty()) return fail(blocked.front().what, blocked.front().repair);
  auto facts = find_facts(input);
  if (!facts) return std::unexpected(facts.error());
  Plan plan;
  SupervisorPlan& s = plan.supervisor;
  Policy& policy = s.policy;
  policy.home = facts->home;
  policy.project = facts->project;
  policy.rules = credential_rules(credential_input(input, *facts));
  if (auto ok = check_project(input, *facts, policy.rules); !ok) return std::unexpected(ok.error());

  for (Rule& rule : write_rules(write_input(input, *facts)))
    policy.rules.push_back(std::move(rule));
  add_worktree(facts->project, policy);
  auto settings = add_policy_files(
      {input.places.config, input.places.state, facts->home, facts->project, input.options.profile},
      policy);
  if (!settings) return std::unexpected(settings.error());
  plan.settings = std::move(*settings);
  if (auto ok = add_options(input, policy); !ok) return std::unexpected(ok.error());
  if (auto ok = add_mount_aliases(policy); !ok) return std::unexpected(ok.error());
  complete(policy);
  compile(policy);
  if (plan.settings.dns_hosts_only) restrict_names(policy, s.network);

  EnvironmentInput environment;
  environment.variables = input.environment;
  environment.agent_patterns = input.agent_patterns;
  environment.granted = input.options.env;
  for (const std::string& name : plan.settings.pass) environment.granted.push_back(name);
  environment.added = input.agent_environment;
  environment.added.push_back("TMPDIR=" + facts->tmp);
  environment.added.push_back("DISABLE_AUTOUPDATER=1");
  environment.added.push_back("ND7_SESSION=" + input.id);
  for (std::string& entry : cache_variables(facts->cache)) environment.added.push_back(entry);
  plan.environment = plan_environment(environment);

  TreeInput trees;
  trees.homes = {facts->home};
  if (!input.places.passwd_home.empty()) trees.homes.push_back(input.places.passwd_home);
  trees.project = facts->project;
  const std::string path = variable(input.environment, "PATH");
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    if (end > at) trees.path_directories.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  trees.programs = {input.program};
  if (auto own = os::program_chain(input.nd7)) trees.programs.push_back(*own);
  trees.extra = {facts->tmp, facts->cache};
  std::vector<std::string> left_out;
  plan.trees = exec_trees(policy, trees, &left_out);
  for (const std::string& tree : left_out)
    plan.notes.push_back(
        fmt::format("{} is too large to be listed: programs below it do not start", visible(tree)));

  const os::Downgraded domain =
      os::downgrade(session_ruleset(plan.trees), input.kernel.landlock_abi);
  auto ruleset = os::make_ruleset(domain, nullptr);
  if (!ruleset) return std::unexpected(ruleset.error());
  s.domain.ruleset = std::move(*ruleset);
  s.signals_scoped = (domain.ruleset.scope & os::landlock_scope::signal) != 0;
  auto filter = os::build_filter(filter_rows({s.signals_scoped}));
  if (!filter) return std::unexpected(filter.error());
  s.domain.filter = std::move(*filter);
  s.domain.capabilities = facts->root ? kept_capabilities() : 0;
  s.domain.program = input.program.found;
  s.domain.argv = input.argv;
  s.domain.environment = plan.environment.variables;

  plan.enforced = {
      "files: every write, and reads of credentials, performed by the gate",
      fmt::format("kernel: Landlock ABI {}, seccomp filter, no_new_privs", domain.abi->version),
      "network: TCP by address rules, names through nd7's resolver"};
  for (const std::string& lost : domain.lost)
    plan.not_enforced.push_back("no second layer behind the gate for " + lost);

  s.id = input.id;
  s.directory = session_directory(input.places, input.id);
  s.runtime = input.places.runtime + "/" + input.id;
  s.agent = input.agent;
  s.root = facts->root;
  // Rules on single files end when the file is replaced: reads of those are always performed.
  for (const std::string& tree : plan.trees) {
    struct stat st {};
    if (stat(tree.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) s.read_trees.push_back(tree);
  }
  s.reads_exact = plan.settings.reads_exact;
  s.start_body = start_body(input, plan, *facts);
  return plan;
}

std::string plan_text(const Plan& plan) {
  std::string out;
  const auto section = [&](const char* title) { out += fmt::format("{}\n", title); };
  const Policy& policy = plan.supervisor.policy;
  section("writes allowed");
  for (const Rule& rule : policy.rules)
    if (rule.effect == Effect::allow_write || rule.effect == Effect::own_write)
      out += fmt::format("  {}{}  ({})\n", visible(tilde(policy, rule.path)),
                         rule.effect == Effect::own_write ? " (what the session makes)" : "",
                         visible(rule.reason));
  section("never or guarded");
  for (const Rule& rule : policy.rules)
    if (rule.effect == Effect::never_write || rule.effect == Effect::never_read ||
        rule.effect == Effect::guarded || rule.effect == Effect::judged)
      out += fmt::format("  {}  ({})\n", visible(tilde(policy, rule.path)), visible(rule.reason));
  section("closed to reading");
  for (const Rule& rule : policy.rules)
    if (rule.effect == Effect::deny_read)
      out += fmt::format("  {}  ({})\n", visible(tilde(policy, rule.path)), visible(rule.reason));
  section("programs start from");
  for (const std::string& tree : plan.trees) out += "  " + visible(tilde(policy, tree)) + "\n";
  section("environment withheld");
  for (const std::string& name : plan.environment.withheld) out += "  " + visible(name) + "\n";
  section("enforced");
  for (const std::string& line : plan.enforced) out += "  " + line + "\n";
  if (!plan.not_enforced.empty()) section("not enforced here");
  for (const std::string& line : plan.not_enforced) out += "  " + line + "\n";
  section("runs");
  out += "  " + visible(plan.supervisor.domain.program);
  for (std::size_t i = 1; i < plan.supervisor.domain.argv.size(); ++i)
    out += " " + visible(plan.supervisor.domain.argv[i]);
  return out + "\n";
}

} // namespace nd7
