// The policy file as text: parse it, say exactly where it is wrong, print it, add a line to it.
//
// Two files share one language. policy.toml is the person's own. A project's .nd7.toml comes with
// the project, so it may only narrow (deny_write, deny_read, hosts, dns, log.reads = "exact")
// until a person has accepted its content with `nd7 trust`.
//
// Paths in files.*:
//   "~/x", "/x"   the home, the root of the file system. In the deny lists of a .nd7.toml "/x" is
//                 x in the project, as in a .gitignore there
//   others        relative to the project. In the deny lists they are gitignore's patterns with the
//                 project as base, and hold below the directories of files.write too
// A path with none of * ? [ \ names the place and all below it; with one it is a pattern
// (core/glob.h), anchored where it is written.
//
// Pure: links are not followed here; the caller resolves the paths of the rules it gets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/policy.h"

namespace nd7 {

// One entry of a list, and where it stands (from 1; columns count characters).
struct PolicyEntry {
  std::string text;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  friend bool operator==(const PolicyEntry& a, const PolicyEntry& b) { return a.text == b.text; }
};

// The tables of one place of the file: the top, one [project."..."], one [profile.NAME].
struct PolicyTables {
  std::vector<PolicyEntry> write, deny_write, read, deny_read;
  std::optional<std::vector<PolicyEntry>> hosts; // absent: any host on 443
  std::optional<bool> dns_hosts_only;            // dns = "hosts"
  std::vector<PolicyEntry> ports, listen, pass;
  std::optional<std::uint64_t> keep_content_bytes;
  std::optional<bool> reads_exact;
  friend bool operator==(const PolicyTables&, const PolicyTables&) = default;
};

enum class PolicySource : std::uint8_t { policy_file, project_file, trusted_project_file };

struct PolicyFile {
  std::string name; // for errors: the path as the person knows it
  PolicySource source = PolicySource::policy_file;
  PolicyTables general;
  std::vector<std::pair<std::string, PolicyTables>> projects; // by the path as written
  std::vector<std::pair<std::string, PolicyTables>> profiles; // by name
};

// Errors read "FILE:LINE:COL: text": syntax, unknown keys (with the nearest known one), wrong
// types, bad patterns, names and numbers, and what an unaccepted project file may not say.
Result<PolicyFile> parse_policy(std::string_view text, std::string name,
                                PolicySource source = PolicySource::policy_file);

struct PolicyContext {
  std::string home;    // absolute
  std::string project; // absolute and resolved
  std::string profile; // empty: none
};

// What the tables say beside the rules of a Policy.
struct PolicySettings {
  std::vector<std::string> pass; // environment variables
  bool dns_hosts_only = false;
  std::uint64_t keep_content_bytes = 64 * 1024;
  bool reads_exact = false;
};

// The tables that hold for this project and profile, as one: lists are joined (general, project,
// profile), single values of the later table win. Error: a profile that no file of the session
// can have, with the nearest name.
Result<PolicyTables> effective_tables(const PolicyFile& file, const PolicyContext& context);

// Adds the file's rules. Apply policy.toml first, then .nd7.toml: the hosts of a project file are
// intersected with those that hold already. Rules of an unaccepted project file have
// Origin::project_file, all others Origin::policy_file; a HostGrant with Origin::project_file must
// not open a private address (it only keeps a name among the allowed).
Result<> apply_policy(const PolicyFile& file, const PolicyContext& context, Policy& policy,
                      PolicySettings& settings);

// As TOML that parses to the same tables.
std::string tables_text(const PolicyTables& tables);

// "64KiB", "1 MiB", "1000" -> bytes. Up to 1 GiB.
std::optional<std::uint64_t> parse_size(std::string_view text);

// For `nd7 allow --save`.
enum class GrantKind : std::uint8_t { write, read, deny_write, deny_read, host, port, listen };
struct Grant {
  GrantKind kind = GrantKind::write;
  std::string value; // as it would stand in the list
};
// The text of the policy file with one more entry in the general tables; all other bytes stay.
// Unchanged when the entry is there already. Error: the text does not parse, the value is bad, the
// form of the file leaves no place to add to (then the hint is the line to write by hand), or a
// host while network.hosts is absent, which would restrict the network to that one name.
Result<std::string> save_grant(std::string_view text, const std::string& name, const Grant& grant);

// The known word nearest to `word` by at most two slips, or empty.
std::string nearest_word(std::string_view word, const std::vector<std::string_view>& known);

} // namespace nd7
