// `nd7 allow`, `nd7 deny`, `nd7 rules`, `nd7 why`: the rules of a running session.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "cli/command.h"
#include "cli/control_client.h"
#include "cli/ui.h"
#include "core/policy_text.h"
#include "os/files.h"
#include "os/resolve.h"

namespace nd7 {
namespace {

constexpr Option change_options[] = {
    {"session", 's', "ID", "of this session; needed when several are running"},
    {"read", 0, nullptr, "WHAT is a place to read, not to write"},
    {"host", 0, nullptr, "WHAT is NAME[:PORT], with *.example.com for the names below"},
    {"port", 0, nullptr, "WHAT is the port of a service on this machine"},
    {"listen", 0, nullptr, "WHAT is ADDR:PORT to listen on beyond loopback"},
    {"socket", 0, nullptr, "WHAT is a unix socket"},
    {"save", 0, nullptr, "write it to the policy file too, for the sessions to come"},
    {"json", 0, nullptr, "print JSON"},
};
constexpr Option rules_options[] = {
    {"session", 's', "ID", "of this session"},
    {"json", 0, nullptr, "print JSON"},
};
constexpr Option why_options[] = {
    {"session", 's', "ID", "of this session"},
    {"write", 0, "PATH", "may it write there?"},
    {"read", 0, "PATH", "may it read there?"},
    {"connect", 0, "NAME[:PORT]", "may it connect there? port 443 if none is given"},
    {"socket", 0, "PATH", "may it connect to this unix socket?"},
    {"json", 0, nullptr, "print JSON"},
};

// Absolute, links resolved as far as the path exists, "~" too where the shell left it.
std::string absolute(const Places& places, const std::string& text) {
  std::string path = text;
  if (path == "~" || path.starts_with("~/")) path = places.home + path.substr(1);
  char cwd[PATH_MAX];
  if (getcwd(cwd, sizeof cwd) == nullptr) cwd[0] = 0;
  // Links before dot-dot: what the person means is where the kernel would go.
  if (char* real = ::realpath(path.c_str(), nullptr)) {
    std::string out = real;
    std::free(real);
    return out;
  }
  return os::resolved_as_far(os::lexical_join(cwd, path));
}

// A path as it stands in the policy file: below ~ where it can, its own stars and brackets quoted.
std::string path_entry(const Places& places, const std::string& path) {
  std::string_view rest = path;
  std::string out;
  if (os::is_below(path, places.home)) {
    out = "~";
    rest.remove_prefix(places.home.size());
  }
  for (const char c : rest) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

struct PolicyEdit {
  std::string path; // of the file, links followed
  std::string text; // what it will be
  unsigned mode = 0600;
  bool changed = false;
};

// What the policy file will be with one more entry. Nothing is written yet.
Result<PolicyEdit> plan_save(const Places& places, bool allow, const std::string& what,
                             const std::string& value) {
  Grant grant;
  grant.value = what == "path" || what == "read" ? path_entry(places, value) : value;
  if (what == "path")
    grant.kind = allow ? GrantKind::write : GrantKind::deny_write;
  else if (what == "read")
    grant.kind = allow ? GrantKind::read : GrantKind::deny_read;
  else if (!allow || what == "socket")
    return fail(
        fmt::format("{} cannot be saved", what == "socket" ? "a socket" : "taking this back"),
        "edit " + places.config + "/policy.toml");
  else if (what == "host")
    grant.kind = GrantKind::host;
  else if (what == "port")
    grant.kind = GrantKind::port;
  else
    grant.kind = GrantKind::listen;
  PolicyEdit out;
  out.path = os::resolved_as_far(places.config + "/policy.toml");
  // Whoever keeps a directory there already chose its mode.
  if (access(places.config.c_str(), F_OK) != 0)
    if (auto ok = os::make_private_directory(places.config); !ok)
      return std::unexpected(ok.error());
  std::string before;
  struct stat st {};
  if (stat(out.path.c_str(), &st) == 0) {
    auto text = os::read_file(out.path, std::size_t{1} << 20);
    if (!text) return std::unexpected(text.error());
    before = std::move(*text);
    out.mode = st.st_mode & 0777;
  } else if (errno != ENOENT) {
    return os_error(out.path);
  }
  auto text = save_grant(before, out.path, grant);
  if (!text) return std::unexpected(text.error());
  out.changed = *text != before;
  out.text = std::move(*text);
  // An entry that denies the same place wins in the same file: say so rather than save in vain.
  if (auto file = parse_policy(out.text, out.path); file && allow)
    for (const PolicyEntry& entry :
         what == "path" ? file->general.deny_write : file->general.deny_read)
      if ((what == "path" || what == "read") && entry.text == grant.value)
        return fail(fmt::format("{}:{}: denies {}", out.path, entry.line, visible(grant.value)),
                    "take that entry out first");
  return out;
}

Result<> save(const PolicyEdit& edit) {
  return os::replace_file(edit.path, edit.text, {.mode = edit.mode, .sync = true, .replace = true});
}

int change(const Usage& usage, bool allow, int argc, char** argv) {
  auto args = parse_options(usage, argc, argv);
  if (!args) return args.error();
  if (args->rest().size() != 1) return usage_error(usage, "one WHAT is needed");
  std::string what = "path";
  int kinds = 0;
  for (const char* kind : {"read", "host", "port", "listen", "socket"})
    if (args->has(kind)) {
      what = kind;
      ++kinds;
    }
  if (kinds > 1)
    return usage_error(usage, "only one of --read, --host, --port, --listen, --socket");
  auto places = find_places();
  if (!places) return say_error(places.error());
  auto session = choose_session(*places, args->value("session"));
  if (!session) return say_error(session.error());
  std::string value = args->rest()[0];
  const bool is_path = what == "path" || what == "read" || what == "socket";
  if (is_path) {
    const std::string typed = value;
    value = absolute(*places, value);
    // What is granted is where the path leads, and that is said before it holds.
    const bool broad = value == "/" || value == places->home || os::is_below(places->home, value);
    if (allow && what == "path" && broad &&
        !confirm(fmt::format("{} is {}: let the session write everywhere there?", visible(typed),
                             visible(value))))
      return say_error(
          fail(fmt::format("{} is too broad to be granted without asking", visible(value)),
               "name a directory below it")
              .error());
  }
  std::optional<PolicyEdit> edit;
  if (args->has("save")) {
    auto planned = plan_save(*places, allow, what, value);
    if (!planned) return say_error(planned.error());
    edit = std::move(*planned);
  }
  JsonWriter request;
  request.text("op", allow ? "allow" : "deny").text("what", what);
  if (is_utf8(value))
    request.text("value", value);
  else
    request.text("value_b64", base64(value));
  auto reply = ask_session(*places, *session, request.finish());
  if (!reply) return say_error(reply.error());
  if (edit && edit->changed)
    if (auto ok = save(*edit); !ok) return say_error(ok.error());
  if (args->has("json")) {
    print(reply->text);
    return finish_output(0);
  }
  print(fmt::format("session {} {}, from the next system call on\n", session->id.substr(0, 13),
                    visible(reply->object.text("said"))));
  if (edit)
    print(fmt::format("{} {}\n", edit->changed ? "saved in" : "already in", visible(edit->path)));
  auto holders = scan_json_array(reply->object.find("holders"));
  if (holders && !holders->empty()) {
    std::string list;
    for (const std::string_view holder : *holders)
      list += (list.empty() ? "" : ", ") + json_unquote(holder);
    print(fmt::format("still holding something open there: {}\n", visible(list)));
  }
  return finish_output(0);
}

} // namespace

const Usage usage_allow{
    .name = "allow",
    .summary = "widen the rules of a running session",
    .arguments = "WHAT",
    .options = change_options,
    .details = "WHAT is a path that the session may write, unless an option says otherwise. It "
               "holds for the next system call of every process of the session. Programs outside "
               "the trees of the start can be started from the next session on.",
    .example = "nd7 allow ~/data\nnd7 allow --read ~/.config/gh/hosts.yml\nnd7 allow --port 5432",
};
const Usage usage_deny{
    .name = "deny",
    .summary = "take a rule back, or forbid a place",
    .arguments = "WHAT",
    .options = change_options,
    .details = "What is open already stays open; the processes that hold something are named.",
    .example = "nd7 deny ~/data",
};
const Usage usage_rules{
    .name = "rules",
    .summary = "the rules in force, and where each came from",
    .options = rules_options,
    .example = "nd7 rules",
};
const Usage usage_why{
    .name = "why",
    .summary = "allowed or refused, by which rule",
    .options = why_options,
    .details = "Asks the same function that decides in the session. Exit status 0 when allowed, 1 "
               "when refused.",
    .example = "nd7 why --write ~/data/file\nnd7 why --connect example.com:8443",
};

int cmd_allow(int argc, char** argv) {
  return change(usage_allow, true, argc, argv);
}
int cmd_deny(int argc, char** argv) {
  return change(usage_deny, false, argc, argv);
}

int cmd_rules(int argc, char** argv) {
  auto args = parse_options(usage_rules, argc, argv);
  if (!args) return args.error();
  auto places = find_places();
  if (!places) return say_error(places.error());
  auto session = choose_session(*places, args->value("session"));
  if (!session) return say_error(session.error());
  auto reply = ask_session(*places, *session, R"({"op":"rules"})");
  if (!reply) return say_error(reply.error());
  if (args->has("json")) {
    print(reply->text);
    return finish_output(0);
  }
  auto rules = scan_json_array(reply->object.find("rules"));
  if (!rules) return say_error(rules.error());
  std::vector<std::pair<std::string, std::string>> sections; // effect, lines; as they come first
  for (const std::string_view row : *rules) {
    auto rule = scan_json_object(row);
    if (!rule) continue;
    const std::string effect = rule->text("effect");
    auto section = std::find_if(sections.begin(), sections.end(),
                                [&](const auto& known) { return known.first == effect; });
    if (section == sections.end()) section = sections.insert(section, {effect, {}});
    std::string what =
        rule->has("path") ? rule->text("path") : base64_decode(rule->text("path_b64"));
    if (rule->has("host")) what = rule->text("host");
    if (rule->has("port")) what += fmt::format(":{}", rule->integer("port"));
    if (rule->has("below")) what += " below " + rule->text("below");
    const std::string reason = rule->text("reason");
    section->second += fmt::format("  {}  [{}]{}\n", visible(what), rule->text("origin"),
                                   reason.empty() ? "" : "  " + visible(reason));
  }
  for (const auto& [effect, lines] : sections) print(effect + "\n" + lines);
  return finish_output(0);
}

int cmd_why(int argc, char** argv) {
  auto args = parse_options(usage_why, argc, argv);
  if (!args) return args.error();
  std::string what, value;
  for (const char* kind : {"write", "read", "connect", "socket"})
    if (args->has(kind)) {
      if (!what.empty()) return usage_error(usage_why, "one question at a time");
      what = kind;
      value = args->value(kind);
    }
  if (what.empty()) return usage_error(usage_why, "ask --write, --read, --connect or --socket");
  auto places = find_places();
  if (!places) return say_error(places.error());
  auto session = choose_session(*places, args->value("session"));
  if (!session) return say_error(session.error());
  if (what != "connect") value = absolute(*places, value);
  JsonWriter request;
  request.text("op", "why").text("what", what);
  if (is_utf8(value))
    request.text("value", value);
  else
    request.text("value_b64", base64(value));
  auto reply = ask_session(*places, *session, request.finish());
  if (!reply) return say_error(reply.error());
  const bool allowed = reply->object.boolean("allowed");
  if (args->has("json")) {
    print(reply->text);
  } else {
    print(fmt::format("{}: {}\n", reply->object.text("verdict"),
                      visible(reply->object.text("rule"))));
    if (const std::string open = reply->object.text("open_with"); !open.empty())
      print(fmt::format("to allow it: {}\n", visible(open)));
  }
  return finish_output(allowed ? 0 : 1);
}

} // namespace nd7
