// One entry of a list in the policy file: what may stand there, and the rules it means.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/policy_text.h"

namespace nd7 {

enum class EntryKind : std::uint8_t {
  path,     // of write, read: a relative one is a place in the project
  pattern,  // of deny_write, deny_read: a relative one is gitignore's
  host,     // "github.com", "*.example.com", "db.example.com:5432", "[2001:db8::1]:443"
  listen,   // "0.0.0.0:3000", "[::]:3000"
  variable, // "GITHUB_TOKEN"
};

// Errors say what is wrong with it, without a position.
Result<> check_entry(EntryKind kind, std::string_view text);

// Where relative and rooted texts begin.
struct EntryBases {
  std::string home;
  std::string project;
  bool root_is_project = false;         // deny lists of a .nd7.toml
  std::vector<std::string> more_scopes; // besides the project, for relative patterns
};
// The rules of a checked path or pattern. Usually one; a relative pattern has one for each scope.
std::vector<Rule> entry_rules(EntryKind kind, const PolicyEntry& entry, Effect effect,
                              const EntryBases& bases);

// Of checked texts.
HostGrant host_of(std::string_view text);
ListenGrant listen_of(std::string_view text);

// A basic string of TOML.
std::string toml_quoted(std::string_view text);

} // namespace nd7
