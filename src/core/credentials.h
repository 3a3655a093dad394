// Where secrets live: one row a place, with the reason, and the reading rules made of them.
//
// The table (credential_table.cc) names each place once, relative to the home or to an XDG
// directory; credential_rules() writes it down for every home and every XDG directory in use. A
// row covers its place whether or not it exists yet. Nothing here touches a disk: links are the
// caller's business (Rule::objects).
//
// Exceptions inside a denied place ("~/.ssh/known_hosts") are rules with Effect::allow_read and
// Origin::builtin. Among the built-in reading rules the most specific that matches decides, by
// rule_depth(); of two equally deep ones allow_read wins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/policy.h"

namespace nd7 {

enum class SecretOwner : std::uint8_t {
  cloud, // cloud providers, clusters
  ssh,
  browser,      // browsers, mail and chat programs: sessions, cookies
  keyring,      // password stores, OpenPGP, age, wallets
  token,        // tokens of tools, registries, databases, tunnels
  history,      // shell histories, trash, editor backups
  agent_claude, // open in a session of Claude Code
  agent_codex,  // open in a session of Codex
  agent_other,
  machine, // the machine's own, readable by ordinary users
  root,    // the machine's own, readable by root alone: rules for root only
};
const char* owner_name(SecretOwner owner); // "cloud"

enum class PlaceBase : std::uint8_t {
  home,   // below each home
  config, // below ~/.config and $XDG_CONFIG_HOME
  data,   // below ~/.local/share and $XDG_DATA_HOME
  state,  // below ~/.local/state and $XDG_STATE_HOME
  cache,  // below ~/.cache and $XDG_CACHE_HOME
  system, // absolute
};

enum class PlaceKind : std::uint8_t {
  tree,     // the directory and everything below
  file,     // the file, and copies beside it: NAME~, NAME.bak, .NAME.swp, #NAME#, NAME.1234
  readable, // an exception: stays readable inside a denied tree
};

struct CredentialPlace {
  PlaceBase base;
  PlaceKind kind;
  std::string_view path; // relative to the base, '*' allowed within a component
  SecretOwner owner;
  std::string_view reason; // "holds AWS keys"
};
std::span<const CredentialPlace> credential_table();

// A variable of the starting environment that moves a secret elsewhere.
struct CredentialVariable {
  std::string_view name;
  PlaceKind kind;
  std::string_view below; // relative to the variable's value; empty: the value itself
  SecretOwner owner;
  std::string_view reason;
};
std::span<const CredentialVariable> credential_variables();

// All paths absolute, without links, dots and trailing slashes.
struct CredentialInput {
  std::vector<std::string> homes; // HOME and the home of the passwd entry; as root all users' homes
  std::vector<std::string> config_dirs; // $XDG_CONFIG_HOME and so on, where set; the defaults
  std::vector<std::string> data_dirs;   // below each home are covered anyway
  std::vector<std::string> state_dirs;
  std::vector<std::string> cache_dirs;
  std::string agent;      // "claude", "codex"; any other: a program whose own state is unknown
  std::string claude_dir; // CLAUDE_CONFIG_DIR, empty when not set
  std::string codex_dir;  // CODEX_HOME, empty when not set
  bool is_root = false;
  std::vector<std::pair<std::string, std::string>> environment; // for credential_variables()
};

// Rules with Effect::deny_read and Effect::allow_read, Origin::builtin; shapes subtree, exact and
// glob. The reason reads "cloud: holds AWS keys".
std::vector<Rule> credential_rules(const CredentialInput& input);

} // namespace nd7
