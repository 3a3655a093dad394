// `nd7 allow`, `nd7 deny`, `nd7 rules`, `nd7 why`: the rules of a running session.
#include <cstdlib>

#include <limits.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "cli/command.h"
#include "cli/control_client.h"
#include "cli/ui.h"
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
  if (kinds > 1) return usage_error(usage, "only one of --read, --host, --port, --listen, --socket");
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
      return say_error(fail(fmt::format("{} is too broad to be granted without asking",
                                        visible(value)),
                            "name a directory below it").error());
  }
  JsonWriter request;
  request.text("op", allow ? "allow" : "deny").text("what", what);
  if (is_utf8(value)) request.text("value", value);
  else request.text("value_b64", base64(value));
  auto reply = ask_session(*places, *session, request.finish());
  if (!reply) return say_error(reply.error());
  if (args->has("json")) {
    print(reply->text);
    return finish_output(0);
  }
  print(fmt::format("session {} {}, from the next system call on\n", session->id.substr(0, 13),
                    visible(reply->object.text("said"))));
  auto holders = scan_json_array(reply->object.find("holders"));
  if (holders && !holders->empty()) {
    std::string list;
    for (const std::string_view holder : *holders)
      list += (list.empty() ? "" : ", ") + json_unquote(holder);
    print(fmt::format("still holding something open there: {}\n", visible(list)));
  }
  return finish_output(0);
}

}  // namespace

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

int cmd_allow(int argc, char** argv) { return change(usage_allow, true, argc, argv); }
int cmd_deny(int argc, char** argv) { return change(usage_deny, false, argc, argv); }

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
  std::string effect;
  for (const std::string_view row : *rules) {
    auto rule = scan_json_object(row);
    if (!rule) continue;
    if (rule->text("effect") != effect) {
      effect = rule->text("effect");
      print(effect + "\n");
    }
    std::string what = rule->has("path") ? rule->text("path") : base64_decode(rule->text("path_b64"));
    if (rule->has("host")) what = rule->text("host");
    if (rule->has("port")) what += fmt::format(":{}", rule->integer("port"));
    if (rule->has("below")) what += " below " + rule->text("below");
    const std::string reason = rule->text("reason");
    print(fmt::format("  {}  [{}]{}\n", visible(what), rule->text("origin"),
                      reason.empty() ? "" : "  " + visible(reason)));
  }
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
  if (is_utf8(value)) request.text("value", value);
  else request.text("value_b64", base64(value));
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

}  // namespace nd7
