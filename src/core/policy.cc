#include "core/policy.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "base/bytes.h"

namespace nd7 {
namespace {

bool below_or_same(std::string_view path, std::string_view root) {
  if (root == "/") return true;
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

bool strictly_below(std::string_view path, std::string_view root) {
  return path.size() > root.size() && below_or_same(path, root) && path != "/";
}

char fold(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

// One component against a pattern with '*', ignoring ASCII case: a guard must hold on a directory
// that folds case, and refusing another spelling elsewhere costs nobody anything.
bool component_matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, back = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      back = t;
    } else if (p < pattern.size() && fold(pattern[p]) == fold(text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++back;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<std::string_view> components(std::string_view path) {
  std::vector<std::string_view> out;
  std::size_t at = 0;
  while (at < path.size()) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (end > at) out.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// What lies below the scope of a rule, or nothing when the path is outside of it.
std::vector<std::string_view> scoped_components(const Rule& rule, std::string_view path) {
  if (!rule.scope.empty()) {
    if (!strictly_below(path, rule.scope)) return {};
    path.remove_prefix(rule.scope == "/" ? 1 : rule.scope.size() + 1);
  }
  return components(path);
}

// The pattern stands somewhere in the path: the path itself or one of its parents ends with it.
bool suffix_matches(const Rule& rule, std::string_view path) {
  const auto pattern = components(rule.path);
  const auto parts = scoped_components(rule, path);
  if (pattern.empty() || parts.size() < pattern.size()) return false;
  // A judged file is that file alone: ".git" as a pointer is not all that lies below a directory.
  // So is an exception: what lies below a directory "x.sample" is not a sample.
  const bool alone = rule.effect == Effect::judged || rule.effect == Effect::allow_write;
  const std::size_t first = alone ? parts.size() - pattern.size() : std::size_t{0};
  for (std::size_t start = first; start + pattern.size() <= parts.size(); ++start) {
    bool all = true;
    for (std::size_t i = 0; i < pattern.size() && all; ++i)
      all = component_matches(pattern[i], parts[start + i]);
    if (all) return true;
  }
  return false;
}

bool glob_matches(const Rule& rule, std::string_view path, bool is_directory) {
  if (!rule.compiled) return true; // a glob that was not compiled protects everything
  if (!rule.scope.empty()) {
    if (!strictly_below(path, rule.scope)) return false;
    path.remove_prefix(rule.scope == "/" ? 1 : rule.scope.size() + 1);
  } else {
    path.remove_prefix(path.starts_with('/') ? 1 : 0);
  }
  return rule.compiled->matches(path, is_directory);
}

bool glob_reaches_below(const Rule& rule, std::string_view directory) {
  if (!rule.compiled) return true;
  const std::string_view scope = rule.scope.empty() ? "/" : std::string_view(rule.scope);
  if (below_or_same(scope, directory)) return true;
  if (!strictly_below(directory, scope)) return false;
  directory.remove_prefix(scope == "/" ? 1 : scope.size() + 1);
  return rule.compiled->reaches_below(directory);
}

bool matches_object(const Rule& rule, const FileAction& action) {
  return action.exists && !rule.objects.empty() &&
         std::find(rule.objects.begin(), rule.objects.end(), action.object) != rule.objects.end();
}

bool matches_path(const Rule& rule, const FileAction& action) {
  switch (rule.shape) {
  case Shape::subtree:
    return below_or_same(action.path, rule.path);
  case Shape::exact:
    return action.path == rule.path;
  case Shape::below:
    return strictly_below(action.path, rule.path);
  case Shape::suffix:
    return suffix_matches(rule, action.path);
  case Shape::glob:
    return glob_matches(rule, action.path, action.is_directory);
  }
  return true;
}

bool matches(const Rule& rule, const FileAction& action) {
  return matches_path(rule, action) || matches_object(rule, action);
}

// The rules that match an action, in the policy's order: found once, asked several times.
class Matching {
public:
  Matching(const Policy& policy, const FileAction& action) {
    if (const PolicyIndex* index = policy.index.get();
        index != nullptr && index->rules() == policy.rules.size()) {
      PolicyIndex::Candidates candidates;
      index->find(action, candidates);
      if (!candidates.overflow) {
        for (std::size_t i = 0; i < candidates.count; ++i)
          keep(policy.rules[candidates.numbers[i]], action);
        return;
      }
    }
    for (const Rule& rule : policy.rules) keep(rule, action);
  }
  const Rule* const* begin() const { return more_.empty() ? few_.data() : more_.data(); }
  const Rule* const* end() const { return begin() + count_; }

private:
  void keep(const Rule& rule, const FileAction& action) {
    if (!matches(rule, action)) return;
    if (more_.empty() && count_ < few_.size()) {
      few_[count_++] = &rule;
      return;
    }
    if (more_.empty()) more_.assign(few_.begin(), few_.end());
    more_.push_back(&rule);
    ++count_;
  }

  std::array<const Rule*, 16> few_;
  std::vector<const Rule*> more_;
  std::size_t count_ = 0;
};

bool is_explicit(const Rule& rule) {
  return rule.origin != Origin::builtin;
}

// Later and more deliberate wins: live rules by order, then options of the start, then files.
int rank(const Rule& rule) {
  switch (rule.origin) {
  case Origin::live:
    return 4;
  case Origin::start_option:
    return 3;
  case Origin::policy_file:
    return 2;
  case Origin::project_file:
    return 2;
  case Origin::builtin:
    return 1;
  }
  return 0;
}

// The rule that decides among explicit ones for this access, if any matches.
const Rule* explicit_rule(const Matching& matching, Effect allow, Effect deny) {
  const Rule* best = nullptr;
  for (const Rule* rule : matching) {
    if (!is_explicit(*rule) || (rule->effect != allow && rule->effect != deny)) continue;
    if (best == nullptr || rank(*rule) > rank(*best) ||
        (rank(*rule) == rank(*best) &&
         (rule->order > best->order || (rule->order == best->order && rule->effect == deny))))
      best = rule;
  }
  return best;
}

// The most specific built-in rule of these two effects that matches; allow wins a tie.
const Rule* builtin_rule(const Matching& matching, Effect one, Effect other) {
  const Rule* best = nullptr;
  std::size_t best_depth = 0;
  for (const Rule* rule : matching) {
    if (is_explicit(*rule) || (rule->effect != one && rule->effect != other)) continue;
    const std::size_t depth = rule_depth(*rule);
    const bool allows = rule->effect == Effect::allow_read || rule->effect == Effect::allow_write;
    const bool best_allows = best != nullptr && (best->effect == Effect::allow_read ||
                                                 best->effect == Effect::allow_write);
    if (best == nullptr || std::pair(depth, allows) > std::pair(best_depth, best_allows)) {
      best = rule;
      best_depth = depth;
    }
  }
  return best;
}

// A grant reopens a guarded place only when it names the place or something below it.
bool names(const Rule& grant, const Rule& guard, const FileAction& action) {
  if (grant.shape != Shape::subtree && grant.shape != Shape::exact) return false;
  FileAction of_grant = action;
  of_grant.path = grant.path;
  of_grant.exists = false;
  if (matches(guard, of_grant)) return true;
  // The grant may name the directory whose children are guarded (".git/hooks" for ".git/hooks/*").
  of_grant.path += "/x";
  return guard.path.ends_with("/*") && matches(guard, of_grant) && action.path != grant.path;
}

Verdict allowed(std::string rule) {
  return {Decision::allow, std::move(rule), {}, Judge::none};
}

Verdict refused(std::string rule, std::string open_with = {}) {
  return {Decision::deny, std::move(rule), std::move(open_with), Judge::none};
}

std::string_view parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos || slash == 0 ? std::string_view("/")
                                                       : path.substr(0, slash);
}

// What to put behind `nd7 allow`: the directory, unless that is the home, the root or a top one.
std::string grant_target(const Policy& policy, const FileAction& action) {
  const std::string_view parent = parent_of(action.path);
  const bool broad = parent == "/" || parent == policy.home || parent_of(parent) == "/" ||
                     below_or_same(policy.home, parent) || below_or_same(policy.project, parent);
  return shell_word(tilde(policy, action.is_directory || broad ? action.path : parent));
}

std::string said(const Rule& rule, const char* kind, const Policy& policy) {
  std::string where = rule.path;
  if (rule.shape != Shape::suffix && rule.shape != Shape::glob) where = tilde(policy, rule.path);
  std::string out = fmt::format("{}: {}", kind, where);
  // A line of the policy file is its own reason.
  if (!rule.reason.empty() && rule.reason != "\"" + where + "\"")
    out += fmt::format(" ({})", rule.reason);
  return out;
}

const char* origin_name(const Rule& rule) {
  switch (rule.origin) {
  case Origin::live:
    return "live rule";
  case Origin::start_option:
    return "option of the start";
  case Origin::policy_file:
    return "policy file";
  case Origin::project_file:
    return "project's .nd7.toml";
  case Origin::builtin:
    return "built-in";
  }
  return "";
}

// The guarded or judged rule that holds here. Guards are looked at on their own, not against plain
// grants: a project deep in the tree has a longer path than ".envrc". Among guards and exceptions
// of their kind (".git/hooks/*.sample") the longest pattern wins.
const Rule* guard_of(const Matching& matching) {
  const Rule* best = nullptr;
  for (const Rule* rule : matching) {
    if (is_explicit(*rule)) continue;
    const bool guards = rule->effect == Effect::guarded || rule->effect == Effect::judged;
    const bool excepts = rule->effect == Effect::allow_write && rule->shape == Shape::suffix;
    if (!guards && !excepts) continue;
    if (best == nullptr || rule->path.size() > best->path.size() ||
        (rule->path.size() == best->path.size() && excepts))
      best = rule;
  }
  return best != nullptr && best->effect != Effect::allow_write ? best : nullptr;
}

Verdict decide_write(const Policy& policy, const FileAction& action) {
  const Matching matching(policy, action);
  for (const Rule* rule : matching)
    if (rule->effect == Effect::never_write || rule->effect == Effect::never_read)
      return refused(said(*rule, "never writable", policy));

  const Rule* guard = guard_of(matching);
  if (const Rule* rule = explicit_rule(matching, Effect::allow_write, Effect::deny_write)) {
    if (rule->effect == Effect::deny_write)
      return refused(said(*rule, origin_name(*rule), policy),
                     "nd7 allow " + grant_target(policy, action));
    if (guard == nullptr || names(*rule, *guard, action))
      return allowed(said(*rule, origin_name(*rule), policy));
  }
  if (guard != nullptr && guard->effect == Effect::guarded)
    return refused(said(*guard, "guarded", policy),
                   "nd7 allow " + shell_word(tilde(policy, action.path)));
  if (guard != nullptr) {
    Verdict verdict = refused(said(*guard, "judged by content", policy));
    verdict.decision = Decision::judge;
    verdict.judge = guard->judge;
    return verdict;
  }
  // A home as project (--whole-home) opens no place of credentials: what lies in ~/.ssh decides who
  // may come in.
  if (const Rule* row = builtin_rule(matching, Effect::deny_read, Effect::deny_read))
    return refused(said(*row, "credentials", policy),
                   "nd7 allow " + shell_word(tilde(policy, action.path)));
  if (const Rule* rule = builtin_rule(matching, Effect::allow_write, Effect::own_write)) {
    if (rule->effect == Effect::allow_write || action.made_by_session)
      return allowed(said(*rule, "built-in", policy));
    return refused(said(*rule, "only what this session made there", policy),
                   "nd7 allow " + shell_word(tilde(policy, action.path)));
  }
  return refused("outside the project", "nd7 allow " + grant_target(policy, action));
}

// Another name of a closed file (a hard link) is opened by a grant of this very name, or of a
// directory that holds the closed place too; not by one that happens to hold the link.
bool opens(const Rule& grant, const Rule& closed, const FileAction& action) {
  if (matches_path(closed, action)) return true;
  if (grant.shape == Shape::glob || grant.shape == Shape::suffix) return false;
  return grant.path == action.path || below_or_same(closed.path, grant.path);
}

Verdict decide_read(const Policy& policy, const FileAction& action) {
  const Matching matching(policy, action);
  for (const Rule* rule : matching)
    if (rule->effect == Effect::never_read) return refused(said(*rule, "never readable", policy));
  const auto closed = [&](const Rule& rule, const char* kind) {
    return refused(said(rule, kind, policy),
                   "nd7 allow --read " + shell_word(tilde(policy, action.path)));
  };
  const Rule* row = builtin_rule(matching, Effect::allow_read, Effect::deny_read);
  if (row != nullptr && row->effect == Effect::allow_read) row = nullptr;
  if (const Rule* rule = explicit_rule(matching, Effect::allow_read, Effect::deny_read)) {
    if (rule->effect == Effect::deny_read) return closed(*rule, origin_name(*rule));
    if (row == nullptr || opens(*rule, *row, action))
      return allowed(said(*rule, origin_name(*rule), policy));
  }
  if (row != nullptr) return closed(*row, "credentials");
  return allowed("reading is allowed");
}

bool host_matches(std::string_view pattern, std::string_view name) {
  if (pattern.starts_with("*."))
    return name.size() > pattern.size() - 1 && name.ends_with(pattern.substr(1));
  return pattern == name;
}

// A project's own file and the agent's needs name hosts, but only a person opens more than HTTPS to
// a public address.
bool of_a_person(const HostGrant& grant) {
  return grant.origin != Origin::builtin && grant.origin != Origin::project_file;
}

const HostGrant* host_grant(const Policy& policy, const ConnectAction& action, bool any_origin) {
  const std::string literal = address_text(unmapped(action.address));
  for (const HostGrant& grant : policy.hosts)
    if (grant.port == action.address.port && (any_origin || of_a_person(grant)) &&
        (host_matches(grant.name, action.name) || grant.name == literal))
      return &grant;
  return nullptr;
}

} // namespace

Verdict decide(const Policy& policy, const FileAction& action) {
  return action.access == Access::read ? decide_read(policy, action) : decide_write(policy, action);
}

Verdict decide_connect(const Policy& policy, const ConnectAction& action) {
  const std::string literal = address_text(action.address);
  const std::string& name = action.name.empty() ? literal : action.name;
  const std::uint16_t port = action.address.port;
  const std::string host_command =
      "nd7 allow --host " + shell_word(port == 443          ? name
                                       : name.contains(':') ? fmt::format("[{}]:{}", name, port)
                                                            : fmt::format("{}:{}", name, port));
  const AddressClass where = classify(action.address);
  switch (where) {
  case AddressClass::link_local:
  case AddressClass::metadata:
  case AddressClass::multicast:
  case AddressClass::reserved:
    return refused(
        fmt::format("network: {} is a {} address, never reachable", literal, class_name(where)));
  case AddressClass::loopback:
  case AddressClass::unspecified:
    if (action.own_listener) return allowed("network: a server of this session");
    for (const PortGrant& grant : policy.ports)
      if (grant.port == port) return allowed(fmt::format("network: port {} granted", port));
    return refused(fmt::format("network: port {} of this machine is not this session's", port),
                   fmt::format("nd7 allow --port {}", port));
  case AddressClass::private_range:
  case AddressClass::public_host:
    break;
  }
  const bool plain = where == AddressClass::public_host && !action.local_machine && port == 443;
  if (host_grant(policy, action, plain) != nullptr)
    return allowed(fmt::format("network: {} granted", name));
  if (where == AddressClass::private_range || action.local_machine)
    return refused(fmt::format("network: {} is {}", literal,
                               action.local_machine ? "this machine or a direct neighbour"
                                                    : "in a private range"),
                   host_command);
  if (port != 443)
    return refused(fmt::format("network: only HTTPS (port 443) goes out, not port {}", port),
                   host_command);
  if (policy.only_hosts)
    return refused(fmt::format("network: {} is not among the named hosts", name), host_command);
  return allowed("network: HTTPS to a public address");
}

bool host_granted(const Policy& policy, std::string_view name) {
  return std::any_of(policy.hosts.begin(), policy.hosts.end(), [&](const HostGrant& grant) {
    return of_a_person(grant) && host_matches(grant.name, name);
  });
}

Verdict decide_listen(const Policy& policy, const Address& address) {
  if (classify(address) == AddressClass::loopback) return allowed("network: loopback");
  for (const ListenGrant& grant : policy.listens)
    if (grant.address.port == address.port &&
        (grant.address.bytes == address.bytes ||
         classify(grant.address) == AddressClass::unspecified))
      return allowed(fmt::format("network: listening on port {} granted", address.port));
  const std::string text = address_text(address);
  return refused("network: servers of the session listen on loopback only",
                 address.v6 ? fmt::format("nd7 allow --listen '[{}]:{}'", text, address.port)
                            : fmt::format("nd7 allow --listen {}:{}", text, address.port));
}

Verdict decide_socket(const Policy& policy, std::string_view path, bool bound_by_session) {
  if (bound_by_session) return allowed("sockets: bound in this session");
  FileAction action;
  action.path = path;
  for (const Rule& rule : policy.sockets)
    if (matches(rule, action)) return allowed(said(rule, origin_name(rule), policy));
  if (path.starts_with('@')) return refused("sockets: an abstract socket outside this session");
  return refused("sockets: a unix socket outside this session",
                 "nd7 allow --socket " + shell_word(tilde(policy, path)));
}

bool denies_read_below(const Policy& policy, std::string_view directory) {
  for (const Rule& rule : policy.rules) {
    if (rule.effect != Effect::deny_read && rule.effect != Effect::never_read) continue;
    switch (rule.shape) {
    case Shape::glob:
      if (glob_reaches_below(rule, directory)) return true;
      break;
    case Shape::suffix:
      if (rule.scope.empty() || below_or_same(rule.scope, directory) ||
          below_or_same(directory, rule.scope))
        return true;
      break;
    case Shape::subtree:
    case Shape::exact:
    case Shape::below:
      if (below_or_same(rule.path, directory) || below_or_same(directory, rule.path)) return true;
      break;
    }
  }
  return false;
}

namespace {

// Only patterns that lie at a fixed depth can be looked up, and only '*' can be; the others hold at
// both ends by their text.
void glob_remainder(const Rule& rule, std::string_view path, std::vector<Remainder>& out) {
  const std::string_view text = rule.path;
  if (text.find_first_of("?[\\") != std::string_view::npos || text.contains("**")) return;
  if (!text.substr(0, text.size() - 1).contains('/')) return; // not anchored: at any depth
  auto pattern = components(rule.scope);
  const std::size_t literal = pattern.size();
  for (const std::string_view part : components(text)) pattern.push_back(part);
  const auto parts = components(path);
  if (parts.size() >= pattern.size()) return;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (i < literal ? parts[i] != pattern[i] : !component_matches(pattern[i], parts[i])) return;
  std::string rest;
  for (std::size_t i = parts.size(); i < pattern.size(); ++i) {
    if (!rest.empty()) rest += '/';
    rest += pattern[i];
  }
  const bool wild = parts.size() > literal && pattern[parts.size() - 1] == "*";
  out.push_back({std::move(rest), &rule, wild});
}

} // namespace

std::vector<Remainder> remainders_below(const Policy& policy, std::string_view path) {
  std::vector<Remainder> out;
  for (const Rule& rule : policy.rules) {
    switch (rule.effect) {
    case Effect::allow_read:
    case Effect::allow_write:
    case Effect::own_write:
      continue;
    default:
      break;
    }
    if (rule.shape == Shape::suffix) {
      const auto pattern = components(rule.path);
      const auto parts = scoped_components(rule, path);
      // The path's last k components match the pattern's first k: the rest is to be looked up.
      for (std::size_t k = 1; k < pattern.size() && k <= parts.size(); ++k) {
        bool all = true;
        for (std::size_t i = 0; i < k && all; ++i)
          all = component_matches(pattern[i], parts[parts.size() - k + i]);
        if (!all) continue;
        std::string rest;
        for (std::size_t i = k; i < pattern.size(); ++i)
          rest += (rest.empty() ? "" : "/") + std::string(pattern[i]);
        out.push_back({std::move(rest), &rule, pattern[k - 1] == "*"});
      }
    } else if (rule.shape == Shape::glob) {
      glob_remainder(rule, path, out);
    } else if (strictly_below(rule.path, path)) {
      out.push_back({rule.path.substr(path == "/" ? 1 : path.size() + 1), &rule, false});
    }
  }
  return out;
}

std::size_t rule_depth(const Rule& rule) {
  return components(rule.scope).size() + components(rule.path).size();
}

std::string tilde(const Policy& policy, std::string_view path) {
  if (policy.home.size() > 1 && below_or_same(path, policy.home))
    return "~" + std::string(path.substr(policy.home.size()));
  return std::string(path);
}

std::string shell_word(std::string_view text) {
  static constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_";
  const bool home = text == "~" || text.starts_with("~/");
  const std::string_view rest = home ? text.substr(1) : text;
  if (!text.empty() && rest.find_first_not_of(plain) == std::string_view::npos)
    return std::string(text);
  std::string out = home ? "~" : ""; // the tilde must stay outside the quotes
  std::string_view quoted = rest;
  if (home && quoted.starts_with('/')) {
    out += '/';
    quoted.remove_prefix(1);
  }
  // Bytes that would move the cursor, or be lost when copied from a terminal, as $'\x1b'.
  if (visible(quoted) != quoted) {
    out += "$'";
    for (const char c : quoted) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '\'' || c == '\\')
        out += fmt::format("\\{}", c);
      else if (byte < 32 || byte > 126)
        out += fmt::format("\\x{:02x}", byte);
      else
        out += c;
    }
    return out + '\'';
  }
  out += '\'';
  for (const char c : quoted) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + '\'';
}

void compile(Policy& policy) {
  policy.index.set(std::make_shared<const PolicyIndex>(policy.rules));
}

} // namespace nd7
