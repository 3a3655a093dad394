// Claude Code: hooks and the switch of its own sandbox travel in one `--settings` argument, which
// adds to the user's and the project's files and wins over them.
#include <nlohmann/json.hpp>

#include "agents/client.h"
#include "base/json.h"

namespace nd7 {
namespace {

using Json = nlohmann::ordered_json;

constexpr int timeout_s = 30;
// SessionEnd hooks share 1.5 s unless they have a limit of their own.
constexpr int session_end_timeout_s = 5;

// All events of 2.1.332. Two are not registered:
//   WorktreeCreate   a hook there replaces git's worktree: it would have to make one itself;
//   MessageDisplay   one process for every piece of text on the screen, which the transcript and
//                    Stop's last_assistant_message hold anyway.
// Context is offered where the model was seen to read it. Stop and SubagentStop would take it too,
// but there it makes the agent go on.
constexpr HookEvent events[] = {
    {"SessionStart", "session_start", timeout_s, true},
    {"UserPromptSubmit", "prompt", timeout_s, true},
    {"PreToolUse", "tool_call", timeout_s, true},
    {"PostToolUse", "tool_result", timeout_s, true},
    {"PostToolUseFailure", "tool_result", timeout_s, true},
    {"PostToolBatch", "hook", timeout_s, true},
    {"Stop", "turn_end", timeout_s},
    {"SessionEnd", "session_end", session_end_timeout_s},
    {"Setup", "hook", timeout_s},
    {"UserPromptExpansion", "hook", timeout_s},
    {"PreSkillShellCommand", "hook", timeout_s},
    {"PermissionRequest", "hook", timeout_s},
    {"PermissionDenied", "hook", timeout_s},
    {"StopFailure", "hook", timeout_s},
    {"SubagentStart", "hook", timeout_s},
    {"SubagentStop", "hook", timeout_s},
    {"Notification", "hook", timeout_s},
    {"PreCompact", "hook", timeout_s},
    {"PostCompact", "hook", timeout_s},
    {"PreModelSwitch", "hook", timeout_s},
    {"PostModelSwitch", "hook", timeout_s},
    {"TeammateIdle", "hook", timeout_s},
    {"TaskCreated", "hook", timeout_s},
    {"TaskCompleted", "hook", timeout_s},
    {"Elicitation", "hook", timeout_s},
    {"ElicitationResult", "hook", timeout_s},
    {"ConfigChange", "hook", timeout_s},
    {"WorktreeRemove", "hook", timeout_s},
    {"InstructionsLoaded", "hook", timeout_s},
    {"CwdChanged", "hook", timeout_s},
    {"FileChanged", "hook", timeout_s},
    {"DirectoryAdded", "hook", timeout_s},
    {"MessageDisplay", "hook", 0},
    {"WorktreeCreate", "hook", 0},
};

// The user's own --settings argument: where its value stands in argv, and whether as `--settings=`.
struct SettingsArgument {
  std::size_t index = 0; // 0: none
  bool joined = false;
};

// The last one counts, as it does for the client; what follows `--` is a prompt or another
// program's arguments.
SettingsArgument find_settings(const std::vector<std::string>& argv) {
  SettingsArgument found;
  for (std::size_t i = 1; i < argv.size() && argv[i] != "--"; ++i) {
    if (argv[i] == "--settings" && i + 1 < argv.size()) {
      found = {.index = ++i, .joined = false};
    } else if (argv[i].starts_with("--settings=")) {
      found = {.index = i, .joined = true};
    }
  }
  return found;
}

// The value is JSON if it looks like an object, else a file: the client's own rule.
std::optional<Json> read_settings(const std::string& value, const LaunchInput& input) {
  const std::size_t first = value.find_first_not_of(" \t\r\n");
  const std::size_t last = value.find_last_not_of(" \t\r\n");
  std::optional<std::string> text;
  if (first != std::string::npos && value[first] == '{' && value[last] == '}') {
    text = value;
  } else if (input.read_file) {
    text = input.read_file(value);
  }
  // The strict scanner first: it bounds depth and refuses duplicate keys, nlohmann does neither.
  if (!text || !scan_json_object(*text)) return std::nullopt;
  Json json = Json::parse(*text, nullptr, false);
  if (json.is_discarded()) return std::nullopt;
  return json;
}

// Adds ours to `settings`. False when what the user gave has a shape that the client would not
// understand either.
bool add_ours(Json& settings, const LaunchInput& input) {
  Json& sandbox = settings["sandbox"];
  if (sandbox.is_null()) sandbox = Json::object();
  if (!sandbox.is_object()) return false;
  sandbox["enabled"] = false;
  // A project's file could otherwise blind the record. A choice on the command line stands.
  if (!settings.contains("disableAllHooks")) settings["disableAllHooks"] = false;
  Json& hooks = settings["hooks"];
  if (hooks.is_null()) hooks = Json::object();
  if (!hooks.is_object()) return false;
  for (const HookEvent& event : events) {
    if (event.timeout_s == 0) continue;
    Json& groups = hooks[event.name];
    if (groups.is_null()) groups = Json::array();
    if (!groups.is_array()) return false;
    groups.push_back(Json::parse(claude_hook_group(input.nd7, event.timeout_s)));
  }
  return true;
}

Launch launch_claude(const LaunchInput& input) {
  Launch result{.argv = input.argv, .env = {"DISABLE_AUTOUPDATER=1"}};
  if (input.argv.empty()) return result;
  const auto dump = [](const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  const SettingsArgument theirs = find_settings(input.argv);
  if (theirs.index != 0) {
    std::string& argument = result.argv[theirs.index];
    const std::string value = theirs.joined ? argument.substr(argument.find('=') + 1) : argument;
    if (std::optional<Json> settings = read_settings(value, input); settings) {
      if (add_ours(*settings, input)) {
        argument = (theirs.joined ? "--settings=" : "") + dump(*settings);
        return result;
      }
    }
    // Unreadable or not settings: the client gets it as it is, and says what is wrong with it.
    return result;
  }
  Json settings = Json::object();
  add_ours(settings, input);
  result.argv.insert(result.argv.begin() + 1, {"--settings", dump(settings)});
  return result;
}

} // namespace

std::string claude_hook_group(std::string_view nd7, int timeout) {
  // The form with `args` is executed directly: no shell, no quoting, and the hook's parent is the
  // client itself.
  const std::string hook = JsonWriter()
                               .text("type", "command")
                               .text("command", nd7)
                               .texts("args", {"hook", "claude"})
                               .number("timeout", timeout)
                               .finish();
  return JsonWriter().raw("hooks", "[" + hook + "]").finish();
}

const Client& claude_client() {
  static const Client client{
      .row = {.kind = AgentKind::claude,
              .name = "claude",
              .source = "intent:claude-code",
              .config_variable = "CLAUDE_CONFIG_DIR",
              .pass_env = {"ANTHROPIC_*", "CLAUDE_*", "CLAUDE_CODE_OAUTH_TOKEN"},
              // The API and the login; the rest of what the client looks up it can do without.
              .hosts = {"api.anthropic.com", "claude.ai", "claude.com", "platform.claude.com",
                        "console.anthropic.com"}},
      .events = events,
      .launch = launch_claude};
  return client;
}

} // namespace nd7
