// The rules of a session and the one function that decides by them.
//
// Pure: the gate, `nd7 why` and the tests call the same decide(). A Policy is a value; the live
// policy is replaced as a whole when a rule changes (gate/live_policy.h).
//
// Order for writing: never > live rules (latest match wins) > policy file > guarded > judged >
// built-in grants > refused. A live or policy grant reopens a guarded place only when it names that
// place or something below it; nothing reopens a `never` rule.
// Order for reading: nd7's own records > live rules > policy file > credential table > allowed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/action.h"
#include "core/glob.h"
#include "core/policy_index.h"

namespace nd7 {

// What a rule does with what it matches.
enum class Effect : std::uint8_t {
  never_write, // no grant reopens it
  never_read,  // nd7's own records
  guarded,     // runs later outside: refused unless granted by name
  judged,      // the change is decided on its content (core/judge.h)
  allow_write,
  own_write, // writable where this session created the entry (shared temporary places)
  deny_write,
  allow_read,
  deny_read, // a row of the credential table, or the policy's
};

enum class Shape : std::uint8_t {
  subtree, // `path` and everything below
  exact,   // `path` alone
  below,   // everything below `path`, not itself
  suffix,  // a path whose last components match `path`, e.g. ".git/hooks/*", inside `scope`
  glob,    // gitignore pattern, relative to `scope` (empty: anywhere)
};

enum class Origin : std::uint8_t { builtin, start_option, policy_file, project_file, live };

enum class Judge : std::uint8_t { none, git_config, git_pointer, codex_config, claude_settings };

struct Rule {
  Effect effect = Effect::deny_write;
  Shape shape = Shape::subtree;
  std::string path;  // absolute and resolved, or a pattern
  std::string scope; // for suffix and glob: the directory it applies below
  Origin origin = Origin::builtin;
  std::string reason; // "holds private keys", for people
  Judge judge = Judge::none;
  std::uint32_t order = 0;       // among live rules: later wins
  std::vector<ObjectId> objects; // what it named at the last resolution, by identity
  std::shared_ptr<const Glob> compiled;
};

struct HostGrant {
  std::string name; // "github.com", "*.example.com"
  std::uint16_t port = 443;
  Origin origin = Origin::builtin;
};

struct PortGrant {
  std::uint16_t port = 0; // a service on this machine
  Origin origin = Origin::builtin;
};

struct ListenGrant {
  Address address; // address and port
  Origin origin = Origin::builtin;
};

struct Policy {
  std::vector<Rule> rules;
  std::vector<HostGrant> hosts;
  bool only_hosts = false; // named hosts only (enforced by the relay)
  std::vector<PortGrant> ports;
  std::vector<ListenGrant> listens;
  std::vector<Rule> sockets; // unix sockets granted by name (allow_write, exact or subtree)
  std::vector<std::string> observed_trees; // reads below may be left to the kernel: nothing there
                                           // is closed to reading (gate/live_policy.h fills it)
  std::string home;                        // for writing "~/x" in sentences
  std::string project;
  IndexHandle index; // set by compile(), left behind by copies
};

// Makes decide() quick: call it when all rules stand, before the policy is used. Rules that change
// afterwards in place need another call; without one a policy is decided by looking at all rules.
void compile(Policy& policy);

enum class Decision : std::uint8_t { allow, deny, judge };

struct Verdict {
  Decision decision = Decision::deny;
  std::string rule;      // "credentials: ~/.aws holds AWS keys"; what decided, for people and log
  std::string open_with; // the command that would allow it, empty when no grant opens it
  Judge judge = Judge::none;
  bool allowed() const { return decision == Decision::allow; }
};

Verdict decide(const Policy& policy, const FileAction& action);
Verdict decide_connect(const Policy& policy, const ConnectAction& action);
// Did a person grant this host by name (on any port)? Such a name may be asked for and may point at
// a private address. Lower case, without trailing dot.
bool host_granted(const Policy& policy, std::string_view name);
Verdict decide_listen(const Policy& policy, const Address& address);
Verdict decide_socket(const Policy& policy, std::string_view path, bool bound_by_session);

// True when something below `directory` is refused for reading, so that reads below it may not be
// left to the kernel (see docs/architecture.md, "observed").
bool denies_read_below(const Policy& policy, std::string_view directory);

// The relative paths that must not exist below an object that is about to get the name `path`,
// because a rule would cover them there ("hooks" when something is moved onto P/.git).
// Used to judge naming, linking or moving onto an ancestor of a guarded place.
struct Remainder {
  std::string relative; // components, may hold '*' in the last
  const Rule* rule;
  bool by_wildcard = false; // the path's own last component was matched by '*': its siblings are
                            // covered as well
};
std::vector<Remainder> remainders_below(const Policy& policy, std::string_view path);

// How specific a built-in rule is: the number of components of its scope and path together.
std::size_t rule_depth(const Rule& rule);

// "/home/u/x" -> "~/x" when below the home.
std::string tilde(const Policy& policy, std::string_view path);
// Shell-quoted when it needs to be, for commands that a person copies.
std::string shell_word(std::string_view text);

} // namespace nd7
