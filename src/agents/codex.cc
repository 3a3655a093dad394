// Codex: hooks, their trust and the switch of its own sandbox travel in `-c` flags in front of the
// subcommand, where every subcommand of the client takes them.
#include <fmt/format.h>

#include <algorithm>

#include "agents/client.h"
#include "agents/codex_trust.h"
#include "base/json.h"

namespace nd7 {
namespace {

constexpr int timeout_s = 30;
// The client clamps these two to 3 s.
constexpr int last_words_timeout_s = 3;

// All events of 0.171.0. PreToolUse takes additionalContext only without a permissionDecision; Stop
// takes none at all, and one unknown field makes the client drop the whole answer.
constexpr HookEvent events[] = {
    {"SessionStart", "session_start", timeout_s, true},
    {"UserPromptSubmit", "prompt", timeout_s, true},
    {"PreToolUse", "tool_call", timeout_s, true},
    {"PostToolUse", "tool_result", timeout_s, true},
    {"Stop", "turn_end", timeout_s},
    {"SessionEnd", "session_end", last_words_timeout_s},
    {"Interrupt", "hook", last_words_timeout_s},
    {"PermissionRequest", "hook", timeout_s},
    {"PreCompact", "hook", timeout_s},
    {"PostCompact", "hook", timeout_s},
    {"SubagentStart", "hook", timeout_s},
    {"SubagentStop", "hook", timeout_s},
};

void add_config(std::vector<std::string>& argv, std::string setting) {
  argv.emplace_back("-c");
  argv.push_back(std::move(setting));
}

Launch launch_codex(const LaunchInput& input) {
  if (input.argv.empty()) return {};
  Launch result{.argv = {input.argv.front()}, .env = {}};
  // Its own sandbox cannot start inside a session, and would fail every command. This ends no
  // approvals, and a --sandbox of the user's own wins over it.
  add_config(result.argv, R"(sandbox_mode="danger-full-access")");
  // The program cannot replace itself in a session.
  add_config(result.argv, "check_for_update_on_startup=false");
  // That switch of the client takes away the trust of the user's own hooks, not that of flags.
  const bool lost = std::ranges::find(input.argv, "--ignore-user-config") != input.argv.end();
  if (!input.hooks_installed || lost) {
    const std::string command = codex_hook_command(input.nd7);
    std::string trust;
    for (const HookEvent& event : events) {
      // JSON's string is TOML's too: both know \", \\, \n and \u00xx.
      add_config(result.argv,
                 fmt::format(R"(hooks.{}=[{{hooks=[{{type="command",command={},timeout={}}}]}}])",
                             event.name, json_quote(command), event.timeout_s));
      const CodexHook hook{.event = event.name,
                           .command = command,
                           .timeout_s = event.timeout_s,
                           .source = std::string(codex_session_flags)};
      trust += fmt::format(R"({}{}={{trusted_hash="{}"}})", trust.empty() ? "" : ",",
                           json_quote(codex_hook_key(hook)), codex_hook_hash(hook));
    }
    add_config(result.argv, fmt::format("hooks.state={{{}}}", trust));
  }
  result.argv.insert(result.argv.end(), input.argv.begin() + 1, input.argv.end());
  return result;
}

} // namespace

std::string hook_word(std::string_view text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789/._-+";
  if (!text.empty() && text.find_first_not_of(plain) == std::string_view::npos) {
    return std::string(text);
  }
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += R"('\'')";
    } else if (c == '\\') {
      word += R"('\\')"; // in fish a backslash escapes inside single quotes too
    } else {
      word += c;
    }
  }
  return word + "'";
}

std::string codex_hook_command(std::string_view nd7) {
  return hook_word(nd7) + " hook codex";
}

std::string codex_hook_group(std::string_view nd7, int timeout) {
  const std::string hook = JsonWriter()
                               .text("type", "command")
                               .text("command", codex_hook_command(nd7))
                               .number("timeout", timeout)
                               .finish();
  return JsonWriter().raw("hooks", "[" + hook + "]").finish();
}

const Client& codex_client() {
  static const Client client{
      .row = {.kind = AgentKind::codex,
              .name = "codex",
              .source = "intent:codex",
              .config_variable = "CODEX_HOME",
              .pass_env = {"OPENAI_*", "CODEX_*"},
              // The API, the login and the account's own back end; plugins (github.com) it can do
              // without.
              .hosts = {"api.openai.com", "auth.openai.com", "chatgpt.com", "ab.chatgpt.com"}},
      .events = events,
      .launch = launch_codex};
  return client;
}

} // namespace nd7
