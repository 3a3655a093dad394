#include "core/credentials.h"

#include <algorithm>
#include <memory>
#include <set>
namespace nd7 {

namespace {

std::string joined(std::string_view directory, std::string_view relative) {
  if (directory.empty()) return std::string(relative);
  std::string path(directory);
  if (relative.empty()) return path;
  if (path.back() != '/') path += '/';
  path += relative;
  return path;
}

// The text of a name as a pattern that matches it alone; '*' stays special when asked.
std::string escaped(std::string_view name, bool keep_star) {
  std::string out;
  for (char c : name) {
    if (c == '\\' || c == '?' || c == '[' || c == '!' || (c == '*' && !keep_star)) out += '\\';
    out += c;
  }
  return out;
}

std::string_view parent_of(std::string_view path) {
  std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {};
  return slash == 0 ? path.substr(0, 1) : path.substr(0, slash);
}

std::string_view name_of(std::string_view path) {
  std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool absolute(std::string_view path) {
  return path.size() > 1 && path.front() == '/';
}

// Collects rules; the same one from two homes or two variables is kept once.
class Writer {
public:
  void place(std::string_view base, const CredentialPlace& row) {
    std::string why = reason(row.owner, row.reason);
    std::size_t star = row.path.find('*');
    if (star == std::string_view::npos) return literal(joined(base, row.path), row.kind, why);
    // The literal components become the scope: such a rule costs nothing for paths elsewhere.
    std::size_t slash = row.path.rfind('/', star);
    std::string_view leading = slash == std::string_view::npos ? "" : row.path.substr(0, slash);
    std::string_view pattern =
        slash == std::string_view::npos ? row.path : row.path.substr(slash + 1);
    std::string scope = joined(base, leading);
    add(effect_of(row.kind), Shape::glob, "/" + escaped(pattern, true), scope.empty() ? "/" : scope,
        why);
  }

  // `path` is taken as it is, stars and all. A file of the table has a name of its own, so what is
  // named after it is a copy; one that a variable names may be called anything ("config").
  void literal(const std::string& path, PlaceKind kind, const std::string& why,
               bool own_name = true) {
    Shape shape = kind == PlaceKind::file ? Shape::exact : Shape::subtree;
    add(effect_of(kind), shape, path, "", why);
    if (kind != PlaceKind::file) return;
    // What editors and careful programs leave beside a file.
    std::string name = escaped(name_of(path), false);
    const std::vector<std::string> copies =
        own_name ? std::vector{"/" + name + "[-.~_#]*", "/[.#]" + name + "*", "/.#" + name + "*"}
                 : std::vector{"/" + name + "~", "/[.#]" + name + "[.#]*", "/.#" + name};
    for (const std::string& copy : copies)
      add(Effect::deny_read, Shape::glob, copy, std::string(parent_of(path)), why);
  }

  static std::string reason(SecretOwner owner, std::string_view text) {
    return std::string(owner_name(owner)) + ": " + std::string(text);
  }

  std::vector<Rule> take() { return std::move(rules_); }

private:
  static Effect effect_of(PlaceKind kind) {
    return kind == PlaceKind::readable ? Effect::allow_read : Effect::deny_read;
  }

  void add(Effect effect, Shape shape, std::string path, std::string scope, std::string reason) {
    if (!seen_.insert({effect, shape, path + '\n' + scope}).second) return;
    Rule rule;
    rule.effect = effect;
    rule.shape = shape;
    rule.path = std::move(path);
    rule.scope = std::move(scope);
    rule.reason = std::move(reason);
    if (shape == Shape::glob) {
      Result<Glob> glob = Glob::parse(rule.path);
      if (!glob) return; // a row of the table that is no pattern: credentials_test refuses it
      rule.compiled = std::make_shared<const Glob>(std::move(*glob));
    }
    rules_.push_back(std::move(rule));
  }

  struct Key {
    Effect effect;
    Shape shape;
    std::string text;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  std::set<Key> seen_;
  std::vector<Rule> rules_;
};

std::vector<std::string> bases(const std::vector<std::string>& homes, std::string_view below,
                               const std::vector<std::string>& moved) {
  std::vector<std::string> out;
  for (const std::string& home : homes)
    if (absolute(home)) out.push_back(joined(home, below));
  for (const std::string& directory : moved)
    if (absolute(directory)) out.push_back(directory);
  return out;
}

std::vector<std::string> bases_of(PlaceBase base, const CredentialInput& input) {
  switch (base) {
  case PlaceBase::home:
    return bases(input.homes, "", {});
  case PlaceBase::config:
    return bases(input.homes, ".config", input.config_dirs);
  case PlaceBase::data:
    return bases(input.homes, ".local/share", input.data_dirs);
  case PlaceBase::state:
    return bases(input.homes, ".local/state", input.state_dirs);
  case PlaceBase::cache:
    return bases(input.homes, ".cache", input.cache_dirs);
  case PlaceBase::system:
    return {""};
  }
  return {};
}

bool is_or_holds(std::string_view directory, std::string_view path) {
  if (directory == "/") return true;
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

// A value that names the home, one above it or a device ("HISTFILE=/dev/null") hides nothing; as a
// rule it would close everything.
bool names_a_secret(std::string_view value, const CredentialInput& input) {
  if (!absolute(value) || is_or_holds("/dev", value) || is_or_holds("/proc", value)) return false;
  if (value.find('\0') != std::string_view::npos) return false;
  return std::ranges::none_of(input.homes,
                              [&](const std::string& home) { return is_or_holds(value, home); });
}

void moved_by_environment(const CredentialInput& input, Writer& writer) {
  for (const CredentialVariable& variable : credential_variables()) {
    for (const auto& [name, text] : input.environment) {
      if (name != variable.name) continue;
      std::string_view rest = text;
      while (!rest.empty()) { // KUBECONFIG is a list, KRB5CCNAME has a type before a colon
        std::size_t colon = rest.find(':');
        std::string_view value = rest.substr(0, colon);
        rest = colon == std::string_view::npos ? std::string_view{} : rest.substr(colon + 1);
        while (value.size() > 1 && value.ends_with('/')) value.remove_suffix(1);
        std::string path = joined(value, variable.below);
        if (absolute(value) && names_a_secret(path, input))
          writer.literal(path, variable.kind, Writer::reason(variable.owner, variable.reason),
                         false);
      }
    }
  }
}

// The agent of this session needs its own state; the others' is none of its business.
void agents_states(const CredentialInput& input, Writer& writer) {
  struct Agent {
    std::string_view name, default_directory, token;
    SecretOwner owner;
    const std::string& moved_to;
    std::string_view reason;
  };
  const Agent agents[] = {
      {"claude", ".claude", ".credentials.json", SecretOwner::agent_claude, input.claude_dir,
       "holds Claude Code's token and transcripts"},
      {"codex", ".codex", "auth.json", SecretOwner::agent_codex, input.codex_dir,
       "holds Codex's token and transcripts"},
  };
  for (const Agent& agent : agents) {
    std::string why = Writer::reason(agent.owner, agent.reason);
    bool moved = absolute(agent.moved_to);
    if (input.agent != agent.name) {
      if (moved && names_a_secret(agent.moved_to, input))
        writer.literal(agent.moved_to, PlaceKind::tree, why);
      continue;
    }
    if (!moved) continue; // its rows of the table are left out: nothing denies it
    writer.literal(agent.moved_to, PlaceKind::readable, "the session's own agent");
    for (const std::string& home : input.homes) { // another account's, then
      std::string usual = joined(home, agent.default_directory);
      if (absolute(home) && usual != agent.moved_to)
        writer.literal(joined(usual, agent.token), PlaceKind::file, why);
    }
  }
}

bool own_state(const CredentialPlace& row, const CredentialInput& input) {
  return (row.owner == SecretOwner::agent_claude && input.agent == "claude") ||
         (row.owner == SecretOwner::agent_codex && input.agent == "codex");
}

// Snapshots of the file system that holds a home are second copies of its keys, with objects of
// their own. They lie at the root of a file system, so at the home or above it.
void snapshots(const CredentialInput& input, Writer& writer) {
  for (const std::string& home : input.homes) {
    if (!absolute(home)) continue;
    for (std::string_view at = home;; at = parent_of(at)) {
      for (std::string_view name : {".snapshots", ".snapshot", ".zfs"})
        writer.literal(joined(at, name), PlaceKind::tree,
                       "machine: snapshots, second copies of keys");
      if (at == "/") break;
    }
  }
}

} // namespace

const char* owner_name(SecretOwner owner) {
  switch (owner) {
  case SecretOwner::cloud:
    return "cloud";
  case SecretOwner::ssh:
    return "ssh";
  case SecretOwner::browser:
    return "browser";
  case SecretOwner::keyring:
    return "keyring";
  case SecretOwner::token:
    return "token";
  case SecretOwner::history:
    return "history";
  case SecretOwner::agent_claude:
    return "agent:claude";
  case SecretOwner::agent_codex:
    return "agent:codex";
  case SecretOwner::agent_other:
    return "agent:other";
  case SecretOwner::machine:
    return "machine";
  case SecretOwner::root:
    return "root";
  }
  return "?";
}

std::vector<Rule> credential_rules(const CredentialInput& input) {
  Writer writer;
  for (const CredentialPlace& row : credential_table()) {
    if (own_state(row, input)) continue;
    if (row.owner == SecretOwner::root && !input.is_root) continue;
    for (const std::string& base : bases_of(row.base, input)) writer.place(base, row);
  }
  agents_states(input, writer);
  moved_by_environment(input, writer);
  snapshots(input, writer);
  if (input.is_root && std::ranges::find(input.homes, "/root") == input.homes.end())
    writer.literal("/root", PlaceKind::tree, "root: the home of root");
  return writer.take();
}

} // namespace nd7
