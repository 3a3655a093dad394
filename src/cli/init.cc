// `nd7 init`: registers the hooks with the agents, and an alias that starts them under `nd7 run`.
// Plans all changes first, shows them, then makes them; every edit is textual (agents/), so that
// --remove gives each file back byte for byte.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>

#include "agents/client.h"
#include "agents/codex_trust.h"
#include "agents/settings_edit.h"
#include "agents/shell_alias.h"
#include "base/bytes.h"
#include "cli/agent_files.h"
#include "cli/codex_client.h"
#include "cli/command.h"
#include "cli/ui.h"
#include "session/session.h"

namespace nd7 {
namespace {

struct Request {
  std::vector<AgentKind> agents;
  std::string nd7;
  std::string project; // empty: the user's own settings
  bool remove = false;
  bool alias = true;
};

Result<std::string> working_directory() {
  std::array<char, PATH_MAX> name{};
  if (::getcwd(name.data(), name.size()) == nullptr) return os_error("getcwd");
  return std::string(name.data());
}

void add_change(std::vector<FileChange>& changes, FileChange change) {
  if (change.before != change.after) changes.push_back(std::move(change));
}

// What a failed edit of a file says.
std::unexpected<Error> in_file(const std::string& path, const Error& error) {
  return fail(fmt::format("{}: {}", visible(path), error.text),
              "repair the file, nd7 changes only what parses");
}

// The hooks file of one agent with or without our hooks.
Result<FileChange> plan_hooks(AgentKind kind, const std::string& path, const Request& request) {
  auto text = read_settings_text(path);
  if (!text) return std::unexpected(text.error());
  FileChange change{.path = path, .before = *text, .after = *text};
  if (request.remove) {
    if (!*text) return change;
    auto without = remove_hooks(kind, **text);
    if (!without) return in_file(path, without.error());
    change.after = std::move(*without);
  } else {
    auto with = add_hooks(kind, *text, nd7_hook_groups(kind, request.nd7));
    if (!with) return in_file(path, with.error());
    change.after = std::move(*with);
  }
  return change;
}

// Codex's trust in the hooks that `hooks_after` (the text of `source` as it will be) holds.
Result<FileChange> plan_trust(const std::string& config, const std::string& source,
                              const std::optional<std::string>& hooks_after, bool remove) {
  auto text = read_settings_text(config);
  if (!text) return std::unexpected(text.error());
  FileChange change{.path = config, .before = *text, .after = *text};
  if (!*text && remove) return change;
  std::vector<CodexHook> hooks;
  if (hooks_after) hooks = codex_hooks_in(*hooks_after, source);
  auto edited = edit_codex_trust(text->value_or(""), text->has_value(), source, hooks);
  if (!edited) return in_file(config, edited.error());
  change.after = std::move(*edited);
  if (remove && change.after->empty() && made_for_trust(**text, source)) change.after.reset();
  return change;
}

// Start files of the shells: those that are there, else that of the login shell.
std::vector<std::string> shell_files(const Places& places) {
  const auto variable = [](const char* name, const std::string& otherwise) {
    const char* value = ::getenv(name);
    return value != nullptr && *value == '/' ? std::string(value) : otherwise;
  };
  const std::array<std::pair<const char*, std::string>, 3> known = {{
      {"bash", places.home + "/.bashrc"},
      {"zsh", variable("ZDOTDIR", places.home) + "/.zshrc"},
      {"fish", variable("XDG_CONFIG_HOME", places.home + "/.config") + "/fish/config.fish"},
  }};
  std::vector<std::string> files;
  for (const auto& [shell, path] : known) {
    if (::access(path.c_str(), F_OK) == 0) files.push_back(path);
  }
  const std::string login = variable("SHELL", "");
  for (const auto& [shell, path] : known) {
    if (files.empty() && login.substr(login.rfind('/') + 1) == shell) files.push_back(path);
  }
  return files;
}

Result<> plan_aliases(const Places& places, const Request& request,
                      std::vector<FileChange>& changes) {
  for (const std::string& path : shell_files(places)) {
    auto text = read_settings_text(path);
    if (!text) return std::unexpected(text.error());
    FileChange change{.path = path, .before = *text, .after = *text};
    AliasEdit edit{.nd7 = request.nd7, .add = {}, .remove = {}};
    (request.remove ? edit.remove : edit.add) = request.agents;
    std::string after = edit_aliases(text->value_or(""), text->has_value(), edit);
    if (*text || !after.empty()) change.after = std::move(after);
    if (request.remove && *text && change.after->empty() && made_for_aliases(**text)) {
      change.after.reset();
    }
    add_change(changes, std::move(change));
  }
  return {};
}

Result<std::vector<FileChange>> plan(const Places& places, const Request& request) {
  std::vector<FileChange> changes;
  for (const AgentKind kind : request.agents) {
    const AgentFiles files = agent_files(kind, places, request.project);
    const std::string& path = request.project.empty() ? files.user_hooks : files.project_hooks;
    auto hooks = plan_hooks(kind, path, request);
    if (!hooks) return std::unexpected(hooks.error());
    if (!files.config.empty()) {
      auto trust = plan_trust(files.config, path, request.remove ? std::nullopt : hooks->after,
                              request.remove);
      if (!trust) return std::unexpected(trust.error());
      add_change(changes, std::move(*trust));
    }
    add_change(changes, std::move(*hooks));
  }
  if (request.alias && request.project.empty()) {
    if (auto planned = plan_aliases(places, request, changes); !planned) {
      return std::unexpected(planned.error());
    }
  }
  return changes;
}

// Asks Codex itself. False when it will not run our hooks.
bool verify_codex(const Places& places, const Request& request, const std::string& directory) {
  const std::string program = find_on_path("codex");
  if (program.empty()) {
    say("codex is not on the PATH, so whether it trusts the hooks could not be asked");
    return true;
  }
  const auto listed = ask_codex_hooks(program, directory);
  if (!listed) {
    say("codex could not be asked whether it trusts the hooks: " + listed.error().text);
    return true;
  }
  const AgentFiles files = agent_files(AgentKind::codex, places, request.project);
  const std::string source =
      (request.project.empty() ? files.user_hooks : files.project_hooks) + ":";
  std::size_t trusted = 0;
  for (const CodexListedHook& hook : *listed) {
    if (!hook.key.starts_with(source)) continue;
    if (hook.command != codex_hook_command(request.nd7)) continue;
    if (hook.trust == "trusted" && hook.enabled) {
      ++trusted;
    } else {
      say(fmt::format("codex will not run {}: it is {}{}", visible(hook.key), hook.trust,
                      hook.enabled ? "" : ", switched off"));
    }
  }
  const std::size_t wanted = hook_events(AgentKind::codex).size();
  if (trusted == wanted) {
    say(fmt::format("codex confirms that it trusts all {} hooks", wanted));
    return true;
  }
  say(fmt::format("codex trusts {} of {} hooks", trusted, wanted));
  if (trusted == 0 && !request.project.empty()) {
    say("codex reads a project's hooks only when it trusts the project: start codex there once");
  }
  return false;
}

std::vector<AgentKind> agents_here(const Places& places) {
  std::vector<AgentKind> found;
  for (const AgentKind kind : {AgentKind::claude, AgentKind::codex}) {
    struct stat st {};
    if (!find_on_path(agent_row(kind).name).empty() ||
        ::stat(agent_files(kind, places, {}).directory.c_str(), &st) == 0) {
      found.push_back(kind);
    }
  }
  return found;
}

constexpr Option options[] = {
    {"project", 0, nullptr, "for this project instead of all of the user's"},
    {"remove", 0, nullptr, "take everything out again"},
    {"dry-run", 0, nullptr, "show the changes and make none"},
    {"no-alias", 0, nullptr, "leave the shells' start files alone"},
};

} // namespace

const Usage usage_init{
    .name = "init",
    .summary = "register nd7's hooks with the agents",
    .arguments = "[claude|codex]",
    .options = options,
    .details =
        "Adds one hook an event to the agent's own settings, keeping every other byte of them, "
        "and\n"
        "an alias to the shells' start files, so that `claude` means `nd7 run claude`. With no\n"
        "agent named, every agent that is found. The changes are shown; a second time changes\n"
        "nothing; --remove gives the files back as they were.\n"
        "\n"
        "Codex runs a hook only when its config.toml holds a hash of it. init records that hash,\n"
        "which is what choosing \"Trust\" in Codex does, and then asks Codex whether it agrees.\n"
        "\n"
        "--project writes .claude/settings.local.json and .codex/hooks.json below the current\n"
        "directory, and no alias.",
    .example = "nd7 init --dry-run\nnd7 init claude\nnd7 init --remove"};

int cmd_init(int argc, char** argv) {
  const auto args = parse_options(usage_init, argc, argv);
  if (!args) return args.error();
  const auto places = find_places();
  if (!places) return say_error(places.error());
  const auto directory = working_directory();
  if (!directory) return say_error(directory.error());
  const auto program = own_program();
  if (!program) return say_error(program.error());

  Request request;
  request.nd7 = *program;
  request.remove = args->has("remove");
  request.alias = !args->has("no-alias");
  if (args->has("project")) request.project = *directory;
  for (const std::string& name : args->rest()) {
    const AgentKind kind = agent_by_name(name);
    if (kind == AgentKind::none) {
      return usage_error(usage_init, fmt::format("unknown agent '{}'", visible(name)));
    }
    if (std::ranges::find(request.agents, kind) == request.agents.end()) {
      request.agents.push_back(kind);
    }
  }
  if (request.agents.empty()) request.agents = agents_here(*places);
  if (request.agents.empty()) {
    say("no agent found: neither claude nor codex is on the PATH or has a state directory");
    say("try: nd7 init claude");
    return 2;
  }

  const auto changes = plan(*places, request);
  if (!changes) return say_error(changes.error());
  for (const FileChange& change : *changes) print(change_text(change));
  if (args->has("dry-run")) {
    say(changes->empty() ? "nothing to change" : "nothing was changed (--dry-run)");
    return 0;
  }
  const bool codex = std::ranges::find(request.agents, AgentKind::codex) != request.agents.end();
  if (changes->empty()) {
    say(request.remove ? "nothing of nd7 is there" : "everything is there already");
  } else {
    if (is_terminal(STDIN_FILENO) && is_terminal(STDERR_FILENO) &&
        !confirm(codex && !request.remove ? "make these changes, and trust the hooks in Codex?"
                                          : "make these changes?")) {
      say("nothing was changed");
      return 1;
    }
    for (const FileChange& change : *changes) {
      if (auto done = apply_change(change); !done) return say_error(done.error());
    }
  }
  if (request.remove) return 0;
  return codex && !verify_codex(*places, request, *directory) ? 1 : 0;
}

} // namespace nd7
