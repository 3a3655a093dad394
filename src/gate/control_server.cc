#include "gate/control_server.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "core/guarded.h"
#include "gate/gate.h"

namespace nd7 {
namespace {

constexpr std::size_t request_bytes_max = 65536;
constexpr int wait_ms_max = 5000;
constexpr std::size_t holders_max = 20;

std::string failure(const std::string& error, const std::string& hint = {}) {
  JsonWriter out;
  out.boolean("ok", false).text("error", error);
  if (!hint.empty()) out.text("hint", hint);
  return out.finish();
}

bool parse_port(std::string_view text, std::uint16_t* port) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *port);
  return error == std::errc{} && end == text.data() + text.size() && *port != 0;
}

const char* effect_name(Effect effect) {
  switch (effect) {
  case Effect::never_write:
    return "never write";
  case Effect::never_read:
    return "never read or write";
  case Effect::guarded:
    return "guarded";
  case Effect::judged:
    return "judged";
  case Effect::allow_write:
    return "write";
  case Effect::own_write:
    return "write what the session made";
  case Effect::deny_write:
    return "deny write";
  case Effect::allow_read:
    return "read";
  case Effect::deny_read:
    return "deny read";
  }
  return "";
}

const char* origin_word(Origin origin) {
  switch (origin) {
  case Origin::builtin:
    return "built-in";
  case Origin::start_option:
    return "start";
  case Origin::policy_file:
    return "policy";
  case Origin::project_file:
    return "project";
  case Origin::live:
    return "live";
  }
  return "";
}

// Processes of the session that hold something open below a path, as "name (pid)".
std::vector<std::string> holders_of(Context& c, const std::string& path, bool writing) {
  std::vector<std::string> out;
  for (const pid_t pid : c.tracees.all()) {
    const std::string fds = fmt::format("/proc/{}/fd", pid);
    DIR* dir = opendir(fds.c_str());
    if (dir == nullptr) continue;
    bool holds = false;
    while (const dirent* entry = readdir(dir)) {
      char target[4096];
      const ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof target);
      if (n <= 0 || !os::is_below(std::string_view(target, static_cast<std::size_t>(n)), path))
        continue;
      struct stat st {};
      if (writing && fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
          (st.st_mode & S_IWUSR) == 0)
        continue; // the link's own mode bits show how it is open
      holds = true;
    }
    closedir(dir);
    if (!holds) continue;
    auto name = read_proc_file(pid, "comm");
    std::string text = name ? *name : "?";
    while (text.ends_with('\n')) text.pop_back();
    out.push_back(fmt::format("{} ({})", visible(text), pid));
    if (out.size() >= holders_max) break;
  }
  return out;
}

} // namespace

Result<Address> parse_listen(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  std::uint16_t port = 0;
  if (colon == std::string_view::npos || !parse_port(text.substr(colon + 1), &port))
    return fail(fmt::format("'{}' is not ADDRESS:PORT", visible(text)));
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  auto address = parse_address(host, port);
  if (!address) return fail(fmt::format("'{}' is no address", visible(host)));
  return *address;
}

Result<HostGrant> parse_host(std::string_view text) {
  HostGrant out;
  std::string_view name = text;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return fail("'[' without ']'");
    name = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    if (!text.empty() && (!text.starts_with(':') || !parse_port(text.substr(1), &out.port)))
      return fail("a host is NAME, NAME:PORT or [ADDRESS]:PORT");
  } else if (const std::size_t colon = text.rfind(':');
             colon != std::string_view::npos && text.find(':') == colon) {
    if (!parse_port(text.substr(colon + 1), &out.port))
      return fail(fmt::format("'{}' has no port number", visible(text)));
    name = text.substr(0, colon);
  }
  while (name.ends_with('.')) name.remove_suffix(1);
  if (auto address = parse_address(name)) {
    out.name = address_text(*address);
    return out;
  }
  if (name.empty() || name.size() > 253) return fail("a host is NAME, NAME:PORT or [ADDRESS]:PORT");
  for (const char ch : name) {
    const bool fine = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
                      (ch >= '0' && ch <= '9') || ch == '-' || ch == '.' || ch == '_' || ch == '*';
    if (!fine) return fail(fmt::format("'{}' is not a host name", visible(name)));
    out.name += static_cast<char>(ch >= 'A' && ch <= 'Z' ? ch - 'A' + 'a' : ch);
  }
  const std::size_t star = out.name.find('*');
  if (star != std::string::npos &&
      (star != 0 || !out.name.starts_with("*.") || out.name.find('*', 1) != std::string::npos ||
       out.name.find('.', 2) == std::string::npos))
    return fail("a '*' stands for the first labels only, as in *.example.com");
  return out;
}

Result<RuleChange> change_policy(const Policy& now, bool allow, const std::string& what,
                                 const std::string& value, std::uint32_t order, Origin origin) {
  RuleChange out{now, {}};
  Policy& policy = out.policy;
  if (what == "path" || what == "read") {
    if (!value.starts_with('/')) return fail("a path must be absolute");
    const Effect give = what == "path" ? Effect::allow_write : Effect::allow_read;
    const Effect take = what == "path" ? Effect::deny_write : Effect::deny_read;
    if (allow && what == "path") {
      for (const Rule& rule : policy.rules)
        if ((rule.effect == Effect::never_write || rule.effect == Effect::never_read) &&
            rule.shape == Shape::subtree && os::is_below(value, rule.path))
          return fail(fmt::format("{} is never writable ({})", tilde(policy, value), rule.reason));
    }
    // An older live rule about exactly this path is replaced.
    std::erase_if(policy.rules, [&](const Rule& rule) {
      return rule.origin == origin && rule.path == value &&
             (rule.effect == give || rule.effect == take);
    });
    Rule rule;
    rule.effect = allow ? give : take;
    rule.shape = Shape::subtree;
    rule.path = value;
    rule.origin = origin;
    rule.reason = allow ? "allowed by the person" : "denied by the person";
    rule.order = order;
    policy.rules.push_back(std::move(rule));
    out.said = fmt::format("{} {} {}", allow ? "may" : "may not", what == "path" ? "write" : "read",
                           tilde(policy, value));
    return out;
  }
  if (what == "host") {
    auto grant = parse_host(value);
    if (!grant) return std::unexpected(grant.error());
    grant->origin = origin;
    const auto same = [&](const HostGrant& g) {
      return g.name == grant->name && g.port == grant->port;
    };
    const std::size_t before = policy.hosts.size();
    std::erase_if(policy.hosts, same);
    if (allow)
      policy.hosts.push_back(*grant);
    else if (before == policy.hosts.size())
      return fail(fmt::format("{} was not granted", value),
                  policy.only_hosts ? ""
                                    : "any host is reachable on port 443; start with "
                                      "--only-hosts to name them");
    out.said =
        fmt::format("{} connect to {}:{}", allow ? "may" : "may not", grant->name, grant->port);
    return out;
  }
  if (what == "port") {
    std::uint16_t port = 0;
    if (!parse_port(value, &port)) return fail(fmt::format("'{}' is not a port", visible(value)));
    const std::size_t before = policy.ports.size();
    std::erase_if(policy.ports, [&](const PortGrant& g) { return g.port == port; });
    if (allow)
      policy.ports.push_back({port, origin});
    else if (before == policy.ports.size())
      return fail(fmt::format("port {} was not granted", port));
    out.said =
        fmt::format("{} connect to port {} of this machine", allow ? "may" : "may not", port);
    return out;
  }
  if (what == "listen") {
    auto address = parse_listen(value);
    if (!address) return std::unexpected(address.error());
    const std::size_t before = policy.listens.size();
    std::erase_if(policy.listens, [&](const ListenGrant& g) { return g.address == *address; });
    if (allow)
      policy.listens.push_back({*address, origin});
    else if (before == policy.listens.size())
      return fail(fmt::format("{} was not granted", value));
    out.said = fmt::format("{} listen on {}", allow ? "may" : "may not", value);
    return out;
  }
  if (what == "socket") {
    if (!value.starts_with('/')) return fail("a socket's path must be absolute");
    const std::size_t before = policy.sockets.size();
    std::erase_if(policy.sockets, [&](const Rule& rule) { return rule.path == value; });
    if (allow) {
      Rule rule;
      rule.effect = Effect::allow_write;
      rule.shape = Shape::subtree;
      rule.path = value;
      rule.origin = origin;
      policy.sockets.push_back(std::move(rule));
    } else if (before == policy.sockets.size()) {
      return fail(fmt::format("{} was not granted", tilde(policy, value)));
    }
    out.said =
        fmt::format("{} connect to the socket {}", allow ? "may" : "may not", tilde(policy, value));
    return out;
  }
  return fail(fmt::format("'{}' is nothing that can be allowed", visible(what)));
}

void complete(Policy& policy) {
  // What runs later outside is guarded in every directory that was granted, as in the project.
  std::vector<std::string> granted;
  for (const Rule& rule : policy.rules)
    if (rule.origin != Origin::builtin && rule.effect == Effect::allow_write &&
        rule.shape == Shape::subtree && !os::is_below(rule.path, policy.project))
      granted.push_back(rule.path);
  for (const std::string& path : granted) {
    const bool known = std::any_of(policy.rules.begin(), policy.rules.end(), [&](const Rule& r) {
      return r.effect == Effect::guarded && r.shape == Shape::suffix && r.scope == path;
    });
    if (known) continue;
    for (Rule& rule : guard_rules(path)) policy.rules.push_back(std::move(rule));
  }
  // Grants hold by name only: an identity must not carry them to another place.
  const auto protects = [](const Rule& rule) {
    return rule.shape != Shape::suffix && rule.shape != Shape::glob &&
           rule.effect != Effect::allow_write && rule.effect != Effect::allow_read &&
           rule.effect != Effect::own_write;
  };
  const std::size_t count = policy.rules.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (!protects(policy.rules[i])) continue;
    policy.rules[i].objects.clear();
    struct stat st {};
    if (stat(policy.rules[i].path.c_str(), &st) != 0) continue;
    policy.rules[i].objects.push_back({st.st_dev, st.st_ino});
    // A closed place that is a link (~/.aws to dotfiles/aws) is closed where it really lies too.
    const std::string real = os::resolved_as_far(policy.rules[i].path);
    const bool known = std::any_of(policy.rules.begin(), policy.rules.end(), [&](const Rule& r) {
      return r.path == real && r.effect == policy.rules[i].effect &&
             r.shape == policy.rules[i].shape;
    });
    if (real == policy.rules[i].path || known) continue;
    Rule there = policy.rules[i];
    there.path = real;
    policy.rules.push_back(std::move(there));
  }
}

std::string rules_json(const Policy& policy) {
  std::string list = "[";
  const auto add = [&](JsonWriter& row) {
    if (list.size() > 1) list += ',';
    list += row.finish();
  };
  for (const Rule& rule : policy.rules) {
    JsonWriter row;
    row.text("effect", effect_name(rule.effect)).path("path", rule.path);
    if (!rule.scope.empty()) row.path("below", rule.scope);
    row.text("origin", origin_word(rule.origin)).text("reason", rule.reason);
    add(row);
  }
  for (const HostGrant& grant : policy.hosts) {
    JsonWriter row;
    row.text("effect", "connect")
        .text("host", grant.name)
        .number("port", grant.port)
        .text("origin", origin_word(grant.origin));
    add(row);
  }
  for (const PortGrant& grant : policy.ports) {
    JsonWriter row;
    row.text("effect", "connect")
        .text("host", "this machine")
        .number("port", grant.port)
        .text("origin", origin_word(grant.origin));
    add(row);
  }
  for (const ListenGrant& grant : policy.listens) {
    JsonWriter row;
    row.text("effect", "listen")
        .text("host", address_text(grant.address))
        .number("port", grant.address.port)
        .text("origin", origin_word(grant.origin));
    add(row);
  }
  for (const Rule& rule : policy.sockets) {
    JsonWriter row;
    row.text("effect", "socket").path("path", rule.path).text("origin", origin_word(rule.origin));
    add(row);
  }
  return list + "]";
}

std::string why_json(Context* c, const Policy& policy, const std::string& what,
                     const std::string& value) {
  Verdict verdict;
  if (what == "write" || what == "read") {
    if (!value.starts_with('/')) return failure("a path must be absolute");
    os::Place place;
    place.real = value;
    place.exists = lstat(value.c_str(), &place.st) == 0;
    FileAction action;
    action.access = what == "write" ? Access::write : Access::read;
    action.path = value;
    action.exists = place.exists;
    action.is_directory = place.is_directory();
    if (place.exists) action.object = {place.st.st_dev, place.st.st_ino};
    if (c != nullptr && action.access == Access::write) {
      action = action_of(*c, policy, action.access, place);
    }
    verdict = decide(policy, action);
  } else if (what == "connect") {
    ConnectAction action;
    auto host = parse_host(value);
    if (!host) return failure(host.error().text);
    if (auto address = parse_address(host->name, host->port)) {
      action.address = *address;
      if (c != nullptr && c->network != nullptr) action.name = c->network->name_of(*address);
    } else {
      // A name: judged as if it resolved to some public address.
      action.name = host->name;
      action.address.bytes = {1, 1, 1, 1};
      action.address.port = host->port;
    }
    if (auto prefixes = machine_prefixes(); prefixes && parse_address(host->name))
      action.local_machine = std::any_of(prefixes->begin(), prefixes->end(), [&](const Prefix& p) {
        return contains(p, action.address);
      });
    verdict = decide_connect(policy, action);
  } else if (what == "socket") {
    struct stat st {};
    bool own = false;
    if (c != nullptr && stat(value.c_str(), &st) == 0) {
      const std::lock_guard hold(c->tables);
      own = c->bound.contains({st.st_dev, st.st_ino});
    }
    verdict = decide_socket(policy, value, own);
  } else {
    return failure("ask --write, --read, --connect or --socket");
  }
  JsonWriter out;
  out.boolean("ok", true)
      .boolean("allowed", verdict.allowed())
      .text("verdict", verdict.allowed()                     ? "allowed"
                       : verdict.decision == Decision::judge ? "judged by content"
                                                             : "refused")
      .text("rule", verdict.rule);
  if (verdict.open_with.empty())
    out.null("open_with");
  else
    out.text("open_with", verdict.open_with);
  return out.finish();
}

// The members of a `grant` or `revoke` entry (docs/log-format.md); `value` has been understood.
static std::string change_body(bool allow, const std::string& what, const std::string& value) {
  JsonWriter body;
  body.text("what", what);
  if (what == "host") {
    if (auto grant = parse_host(value)) body.text("host", grant->name).number("port", grant->port);
  } else if (what == "listen") {
    if (auto address = parse_listen(value))
      body.text("host", address_text(*address)).number("port", address->port);
  } else if (std::uint16_t port = 0; what == "port") {
    if (parse_port(value, &port)) body.number("port", port);
  } else {
    body.path("path", value);
  }
  return body.text("by", allow ? "nd7 allow" : "nd7 deny").finish();
}

std::string ControlServer::change(bool allow, const std::string& what, const std::string& value) {
  const std::lock_guard hold(changing_);
  auto changed = change_policy(*c_.policy.now(), allow, what, value, ++order_, Origin::live);
  if (!changed) return failure(changed.error().text, changed.error().hint);
  complete(changed->policy);
  // On record before it holds.
  c_.recorder.note("nd7", allow ? "grant" : "revoke", change_body(allow, what, value));
  c_.recorder.checkpoint();
  c_.policy.replace(changed->policy);
  std::vector<std::string> holders;
  if (!allow && (what == "path" || what == "read")) holders = holders_of(c_, value, what == "path");
  JsonWriter out;
  out.boolean("ok", true).text("said", changed->said).texts("holders", holders);
  return out.finish();
}

std::string ControlServer::handle(std::string_view line, pid_t client) {
  if (client <= 0 || c_.tracees.belongs(client)) {
    if (const auto process = c_.tracees.process(client))
      c_.recorder.refuse(*process, "connect", "connect", "the control socket",
                         {Decision::deny, "rules are changed from outside only", {}, Judge::none},
                         [](JsonWriter&) {});
    return failure("rules are changed from outside the session only");
  }
  auto request = scan_json_object(line);
  if (!request) return failure(request.error().text);
  const std::string op = request->text("op"), what = request->text("what");
  std::string value = request->text("value");
  if (request->has("value_b64")) value = base64_decode(request->text("value_b64"));
  if (op == "allow" || op == "deny") return change(op == "allow", what, value);
  if (op == "why") return why_json(&c_, *c_.policy.now(), what, value);
  if (op == "rules") {
    JsonWriter out;
    out.boolean("ok", true)
        .raw("rules", rules_json(*c_.policy.now()))
        .boolean("only_hosts", c_.policy.now()->only_hosts);
    return out.finish();
  }
  return failure(fmt::format("'{}' is no request", visible(op)));
}

void ControlServer::serve(Fd connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      (peer.uid != geteuid() && peer.uid != 0))
    return;
  std::string line;
  while (!line.contains('\n')) {
    pollfd wait{connection.get(), POLLIN, 0};
    if (line.size() > request_bytes_max || poll(&wait, 1, wait_ms_max) <= 0) return;
    char buffer[4096];
    const ssize_t n = ::read(connection.get(), buffer, sizeof buffer);
    if (n <= 0) return;
    line.append(buffer, static_cast<std::size_t>(n));
  }
  const std::string answer =
      handle(std::string_view(line).substr(0, line.find('\n')), peer.pid) + "\n";
  std::size_t done = 0;
  while (done < answer.size()) {
    const ssize_t n =
        ::send(connection.get(), answer.data() + done, answer.size() - done, MSG_NOSIGNAL);
    if (n <= 0) return;
    done += static_cast<std::size_t>(n);
  }
}

} // namespace nd7
