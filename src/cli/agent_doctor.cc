#include "cli/agent_doctor.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "agents/client.h"
#include "agents/settings_edit.h"
#include "base/bytes.h"
#include "base/json.h"
#include "cli/agent_files.h"
#include "cli/codex_client.h"
#include "os/files.h"

namespace nd7 {
namespace {

class Report {
public:
  explicit Report(AgentKind kind) : name_(agent_row(kind).name) {}
  void good(std::string_view text) { add(true, text, {}); }
  void bad(std::string_view text, std::string repair) { add(false, text, std::move(repair)); }
  std::vector<Finding> findings;

private:
  void add(bool good, std::string_view text, std::string repair) {
    findings.push_back(
        {.good = good, .text = fmt::format("{}: {}", name_, text), .repair = std::move(repair)});
  }
  std::string name_;
};

std::string init_command(AgentKind kind) {
  return fmt::format("nd7 init {}", agent_row(kind).name);
}

// The text of a file that may be missing; what is wrong with it goes into the report.
std::optional<std::string> text_of(const std::string& path, Report& report) {
  auto text = read_settings_text(path);
  if (!text) {
    report.bad(text.error().text, "make it readable");
    return std::nullopt;
  }
  return *text;
}

// Which events are missing among `groups`, one line; empty: none.
std::string missing_events(AgentKind kind, const std::vector<HookGroup>& groups) {
  std::string missing;
  for (const HookEvent& event : hook_events(kind)) {
    if (event.timeout_s == 0) continue;
    const bool there =
        std::ranges::any_of(groups, [&](const HookGroup& g) { return g.event == event.name; });
    if (!there) missing += (missing.empty() ? "" : ", ") + std::string(event.name);
  }
  return missing;
}

// Hooks of nd7 in the user's or the project's file. True when there are any.
bool check_registered(AgentKind kind, const AgentFiles& files, const AgentCheck& check,
                      Report& report) {
  std::vector<HookGroup> all;
  for (const std::string& path : {files.user_hooks, files.project_hooks}) {
    if (path.empty()) continue;
    const std::optional<std::string> text = text_of(path, report);
    if (!text) continue;
    const auto groups = find_hooks(kind, *text);
    if (!groups) {
      report.bad(fmt::format("{} does not parse ({}), so the agent ignores it, hooks and all",
                             visible(path), groups.error().text),
                 "repair " + visible(path));
      continue;
    }
    all.insert(all.end(), groups->begin(), groups->end());
  }
  if (all.empty()) {
    report.bad("no hooks are registered, so it is recorded only under nd7 run", init_command(kind));
    return false;
  }
  if (const std::string missing = missing_events(kind, all); !missing.empty()) {
    report.bad("hooks are missing for " + missing, init_command(kind));
  } else {
    report.good("hooks are registered for every event");
  }
  std::set<std::string> programs;
  for (const HookGroup& group : all) programs.insert(nd7_program_of(kind, group.text));
  for (const std::string& program : programs) {
    if (::access(program.c_str(), X_OK) != 0) {
      report.bad(fmt::format("its hooks start {}, which cannot be run", visible(program)),
                 init_command(kind));
    } else if (program != check.nd7) {
      report.bad(fmt::format("its hooks start {}, not this program", visible(program)),
                 init_command(kind));
    }
  }
  return true;
}

void check_claude_switches(const AgentFiles& files, const AgentCheck& check, Report& report) {
  const std::vector<std::string> paths = {files.user_hooks,
                                          check.project + "/.claude/settings.json",
                                          check.project + "/.claude/settings.local.json"};
  for (const std::string& path : paths) {
    const auto text = read_settings_text(path);
    if (!text || !*text) continue;
    const auto settings = scan_json_object(**text);
    if (settings && settings->boolean("disableAllHooks")) {
      report.bad(fmt::format("\"disableAllHooks\" in {} switches its hooks off (not under nd7 run)",
                             visible(path)),
                 "take disableAllHooks out of " + visible(path));
    }
  }
  std::vector<std::string> managed = {"/etc/claude-code/managed-settings.json"};
  if (const auto names = os::list_directory("/etc/claude-code/managed-settings.d")) {
    for (const std::string& name : *names) {
      managed.push_back("/etc/claude-code/managed-settings.d/" + name);
    }
  }
  for (const std::string& path : managed) {
    const auto text = read_settings_text(path);
    if (!text || !*text) continue;
    const auto settings = scan_json_object(**text);
    if (settings && settings->boolean("allowManagedHooksOnly")) {
      report.bad(fmt::format("{} allows managed hooks only, so nd7's do not run", path),
                 "ask the administrator to register nd7's hooks there");
    }
  }
  for (const char* name : {"CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE"}) {
    const char* value = ::getenv(name);
    if (value != nullptr && *value != '\0' && std::string_view(value) != "0") {
      report.bad(fmt::format("{} is set, which switches all hooks off", name),
                 fmt::format("unset {}", name));
    }
  }
}

void check_codex_trust(const AgentFiles& files, Report& report) {
  const std::string config = text_of(files.config, report).value_or("");
  for (const std::string& path : {files.user_hooks, files.project_hooks}) {
    if (path.empty()) continue;
    const auto text = read_settings_text(path);
    if (!text || !*text) continue;
    std::string not_trusted;
    std::string off;
    for (const CodexHook& hook : codex_hooks_in(**text, path)) {
      const auto trust = codex_trust(config, hook);
      if (!trust) {
        report.bad(fmt::format("{} does not parse: {}", visible(files.config), trust.error().text),
                   "repair " + visible(files.config));
        return;
      }
      std::string* list = *trust == CodexTrust::trusted    ? nullptr
                          : *trust == CodexTrust::disabled ? &off
                                                           : &not_trusted;
      if (list != nullptr) *list += (list->empty() ? "" : ", ") + hook.event;
    }
    if (!not_trusted.empty()) {
      report.bad(fmt::format("does not trust its hooks in {} and skips them without a word: {}",
                             visible(path), not_trusted),
                 init_command(AgentKind::codex));
    }
    if (!off.empty()) {
      report.bad(fmt::format("hooks are switched off in {}: {}", visible(files.config), off),
                 "take `enabled = false` out of " + visible(files.config));
    }
  }
}

void check_codex_switches(const AgentFiles& files, Report& report) {
  for (const std::string& path : {files.config, std::string("/etc/codex/config.toml"),
                                  std::string("/etc/codex/requirements.toml"),
                                  std::string("/etc/codex/managed_config.toml")}) {
    const auto text = read_settings_text(path);
    if (!text || !*text) continue;
    const auto switches = codex_switches(**text);
    if (!switches) continue;
    if (switches->hooks_off) {
      report.bad(fmt::format("{} switches the feature `hooks` off", visible(path)),
                 "set hooks = true there");
    }
    if (switches->managed_only) {
      report.bad(fmt::format("{} allows managed hooks only, so nd7's do not run", visible(path)),
                 "ask the administrator to register nd7's hooks there");
    }
  }
}

void ask_codex(const AgentFiles& files, const AgentCheck& check, Report& report) {
  const std::string program = find_on_path("codex");
  if (program.empty()) {
    report.bad("is not on the PATH, so it could not be asked about its hooks",
               "install it, or add it to PATH");
    return;
  }
  const auto listed = ask_codex_hooks(program, check.project);
  if (!listed) {
    report.bad("could not be asked about its hooks: " + listed.error().text, "codex --version");
    return;
  }
  std::size_t good = 0;
  std::string bad;
  for (const CodexListedHook& hook : *listed) {
    const bool ours =
        hook.key.starts_with(files.user_hooks + ":") ||
        (!files.project_hooks.empty() && hook.key.starts_with(files.project_hooks + ":"));
    if (!ours || hook.command != codex_hook_command(check.nd7)) continue;
    if ((hook.trust == "trusted" || hook.trust == "managed") && hook.enabled) {
      ++good;
    } else {
      bad += fmt::format("{}{} ({}{})", bad.empty() ? "" : ", ", hook.key, hook.trust,
                         hook.enabled ? "" : ", off");
    }
  }
  if (!bad.empty())
    report.bad("says it will not run: " + visible(bad), init_command(AgentKind::codex));
  if (good > 0) report.good(fmt::format("says itself that it trusts {} hooks of nd7", good));
  if (good == 0 && bad.empty()) {
    report.bad("does not list any hook of nd7", init_command(AgentKind::codex));
  }
}

bool is_here(AgentKind kind, const AgentFiles& files) {
  struct stat st {};
  return !find_on_path(agent_row(kind).name).empty() || ::stat(files.directory.c_str(), &st) == 0;
}

} // namespace

std::vector<Finding> check_agents(const Places& places, const AgentCheck& check) {
  std::vector<Finding> all;
  for (const AgentKind kind : {AgentKind::claude, AgentKind::codex}) {
    const AgentFiles files = agent_files(kind, places, check.project);
    if (!is_here(kind, files)) continue;
    Report report(kind);
    const bool registered = check_registered(kind, files, check, report);
    if (kind == AgentKind::claude) {
      check_claude_switches(files, check, report);
    } else {
      check_codex_switches(files, report);
      if (registered) {
        check_codex_trust(files, report);
        if (check.ask_client) ask_codex(files, check, report);
      }
    }
    all.insert(all.end(), report.findings.begin(), report.findings.end());
  }
  return all;
}

bool hooks_installed(AgentKind kind, const Places& places, const std::string& nd7) {
  if (kind == AgentKind::none) return false;
  const AgentFiles files = agent_files(kind, places, {});
  const auto text = read_settings_text(files.user_hooks);
  if (!text || !*text) return false;
  const auto groups = find_hooks(kind, **text);
  if (!groups || !missing_events(kind, *groups).empty()) return false;
  const bool ours = std::ranges::all_of(
      *groups, [&](const HookGroup& g) { return nd7_program_of(kind, g.text) == nd7; });
  if (!ours || kind == AgentKind::claude) return ours;
  const auto config = read_settings_text(files.config);
  if (!config || !*config) return false;
  const auto switches = codex_switches(**config);
  if (!switches || switches->hooks_off) return false;
  return std::ranges::all_of(codex_hooks_in(**text, files.user_hooks), [&](const CodexHook& hook) {
    return codex_trust(**config, hook).value_or(CodexTrust::missing) == CodexTrust::trusted;
  });
}

} // namespace nd7
