#include "core/environment.h"

#include <algorithm>
#include <array>
#include <map>

namespace nd7 {
namespace {

// Variables that lead to a daemon or a terminal program outside.
constexpr std::array sockets = {
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "GIT_ASKPASS",
    "GPG_AGENT_INFO",
    "GNOME_KEYRING_CONTROL",
    "GNOME_KEYRING_PID",
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "DBUS_STARTER_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "WAYLAND_SOCKET",
    "XAUTHORITY",
    "PULSE_SERVER",
    "PIPEWIRE_REMOTE",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "CONTAINER_HOST",
    "CONTAINERD_ADDRESS",
    "BUILDKIT_HOST",
    "LIBVIRT_DEFAULT_URI",
    "TMUX",
    "TMUX_PANE",
    "STY",
    "ZELLIJ",
    "ZELLIJ_SESSION_NAME",
    "NVIM",
    "NVIM_LISTEN_ADDRESS",
    "EMACS_SERVER_FILE",
    "VSCODE_IPC_HOOK",
    "VSCODE_IPC_HOOK_CLI",
    "VSCODE_GIT_IPC_HANDLE",
    "VSCODE_GIT_ASKPASS_NODE",
    "VSCODE_GIT_ASKPASS_MAIN",
    "REMOTE_CONTAINERS_IPC",
    "KITTY_LISTEN_ON",
    "WEZTERM_UNIX_SOCKET",
    "ALACRITTY_SOCKET",
    "I3SOCK",
    "SWAYSOCK",
    "HYPRLAND_INSTANCE_SIGNATURE",
    "NOTIFY_SOCKET",
    "JOURNAL_STREAM",
    "LISTEN_FDS",
    "LISTEN_PID",
    "SYSTEMD_EXEC_PID",
    "SESSION_MANAGER",
    "XDG_SESSION_ID",
    "KUBECONFIG",
    "AT_SPI_BUS_ADDRESS",
};

// Parts of a name, between underscores, that mean a credential.
constexpr std::array credential_words = {
    "TOKEN", "SECRET",     "SECRETS",     "PASSWORD", "PASSWD",  "PASSPHRASE",
    "PASS",  "CREDENTIAL", "CREDENTIALS", "CREDS",    "APIKEY",  "AUTH",
    "PAT",   "JWT",        "COOKIE",      "DSN",      "PWDFILE",
};
constexpr std::array credential_pairs = {
    "API_KEY",           "ACCESS_KEY",   "SECRET_KEY",  "PRIVATE_KEY", "SIGNING_KEY",
    "ENCRYPTION_KEY",    "ACCOUNT_KEY",  "STORAGE_KEY", "MASTER_KEY",  "SESSION_KEY",
    "CONNECTION_STRING", "DATABASE_URL", "REDIS_URL",   "MONGO_URL",   "MONGODB_URI",
    "AMQP_URL",          "SENTRY_DSN",   "WEBHOOK_URL",
};

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

bool is_word_in(std::string_view name, std::string_view word) {
  for (std::size_t at = name.find(word); at != std::string_view::npos;
       at = name.find(word, at + 1)) {
    const bool starts = at == 0 || name[at - 1] == '_';
    const std::size_t end = at + word.size();
    const bool ends =
        end == name.size() || name[end] == '_' || (name[end] >= '0' && name[end] <= '9');
    if (starts && ends) return true;
  }
  return false;
}

bool pattern_matches(std::string_view pattern, std::string_view name) {
  if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
  return pattern == name;
}

bool any_matches(const std::vector<std::string>& patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& p) { return pattern_matches(p, name); });
}

} // namespace

const char* withheld_reason(std::string_view name) {
  const std::string plain = upper(name);
  if (std::find(sockets.begin(), sockets.end(), plain) != sockets.end())
    return "leads to a socket or a place outside";
  if (plain.starts_with("ND7_")) return "is nd7's own";
  for (const char* pair : credential_pairs)
    if (is_word_in(plain, pair)) return "looks like a credential";
  for (const char* word : credential_words)
    if (is_word_in(plain, word)) return "looks like a credential";
  // Run together: GITHUBTOKEN, MYPASSWORD.
  for (const char* tail : {"TOKEN", "SECRET", "PASSWORD", "APIKEY", "PASSPHRASE"})
    if (plain.ends_with(tail)) return "looks like a credential";
  return nullptr;
}

EnvironmentPlan plan_environment(const EnvironmentInput& input) {
  EnvironmentPlan out;
  std::map<std::string, std::string> kept; // sorted; the last of doubled names wins, as in execve
  for (const std::string& variable : input.variables) {
    const std::size_t equal = variable.find('=');
    if (equal == std::string::npos || equal == 0) continue;
    const std::string name = variable.substr(0, equal);
    if (withheld_reason(name) == nullptr || any_matches(input.granted, name) ||
        any_matches(input.agent_patterns, name))
      kept[name] = variable;
    else
      out.withheld.push_back(name);
  }
  std::sort(out.withheld.begin(), out.withheld.end());
  out.withheld.erase(std::unique(out.withheld.begin(), out.withheld.end()), out.withheld.end());
  for (const auto& [name, variable] : kept) out.passed.push_back(name);
  for (const std::string& variable : input.added)
    kept[variable.substr(0, variable.find('='))] = variable;
  for (auto& [name, variable] : kept) out.variables.push_back(std::move(variable));
  return out;
}

} // namespace nd7
