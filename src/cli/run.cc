// `nd7 run`: plan a session, start it, end as the program did.
#include <cerrno>
#include <cstdlib>

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "agents/agent.h"
#include "agents/settings_commands.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/agent_doctor.h"
#include "cli/command.h"
#include "cli/front.h"
#include "cli/ui.h"
#include "gate/plan.h"
#include "os/files.h"
#include "os/kernel.h"
#include "session/inflight.h"
#include "session/keys.h"

extern char** environ;

namespace nd7 {
namespace {

constexpr int failed = 125, not_executable = 126, not_found = 127;

constexpr Option options[] = {
    {"agent", 0, "NAME", "claude, codex or none; by PROGRAM's name otherwise"},
    {"allow", 0, "PATH", "let the session write there; may be repeated, as all grants"},
    {"read", 0, "PATH", "open a place that is closed to reading"},
    {"host", 0, "NAME[:PORT]", "let it connect there, also on that port or a private address"},
    {"port", 0, "N", "let it connect to a service on this machine"},
    {"listen", 0, "ADDR:PORT", "let it listen beyond loopback"},
    {"socket", 0, "PATH", "let it connect to this unix socket"},
    {"env", 0, "NAME", "pass this variable although it looks like a credential"},
    {"only-hosts", 0, nullptr, "named hosts only, no others on port 443"},
    {"profile", 0, "NAME", "a profile of the policy file"},
    {"whole-home", 0, nullptr, "start in the home directory or around it"},
    {"explain", 0, nullptr, "print the plan and start nothing"},
};

std::vector<std::string> environment_now() {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) out.emplace_back(*entry);
  return out;
}

std::string current_directory() {
  char* cwd = ::realpath(".", nullptr);
  std::string out = cwd != nullptr ? cwd : "";
  std::free(cwd);
  return out;
}

std::string own_program() {
  char* self = ::realpath("/proc/self/exe", nullptr);
  std::string out = self != nullptr ? self : "";
  std::free(self);
  return out;
}

std::string terminal() {
  for (int fd = 0; fd < 3; ++fd)
    if (const char* name = ttyname(fd)) return name;
  const Fd tty(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC));
  const char* name = tty ? ttyname(tty.get()) : nullptr;
  return name != nullptr && std::string_view(name) != "/dev/tty" ? name : "";
}

// What was open above 2 when we started; all of it is closed in the session.
std::vector<std::string> inherited() {
  std::vector<std::string> out;
  DIR* dir = opendir("/proc/self/fd");
  if (dir == nullptr) return out;
  while (const dirent* entry = readdir(dir)) {
    const int fd = std::atoi(entry->d_name);
    if (fd <= 2 || fd == dirfd(dir) || (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0) continue;
    char target[4096];
    const ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof target);
    out.push_back(
        fmt::format("{} {}", fd, std::string(target, n > 0 ? static_cast<std::size_t>(n) : 0)));
  }
  closedir(dir);
  return out;
}

// A datagram socket as standard stream could send to any address.
Result<> check_standard_streams() {
  for (int fd = 0; fd < 3; ++fd) {
    struct stat st {};
    if (fstat(fd, &st) != 0) {
      // Closed: the session's first open would take its place.
      if (::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd)
        return fail(fmt::format("standard stream {} is closed", fd));
      continue;
    }
    int type = 0;
    socklen_t size = sizeof type;
    if (S_ISSOCK(st.st_mode) && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
        type != SOCK_STREAM)
      return fail(fmt::format("standard stream {} is a datagram socket", fd),
                  "redirect it from or to a file or a pipe");
    if (S_ISDIR(st.st_mode))
      return fail(fmt::format("standard stream {} is a directory", fd), "redirect it");
  }
  return {};
}

HookPort hook_port(std::size_t keep_content_bytes) {
  HookPort out;
  out.read = [keep_content_bytes](const std::string& agent, std::string_view payload, int parent) {
    return read_hook(agent_by_name(agent), {payload, keep_content_bytes, parent});
  };
  out.answer = [](const std::string& agent, std::string_view event, std::string_view text) {
    return hook_answer(agent_by_name(agent), event, text);
  };
  return out;
}

constexpr const char* note_for_model =
    "This session runs inside nd7, a sandbox that the Linux kernel enforces. You may write in the "
    "project, in $TMPDIR and in your own state; you may read everything but keys and credentials; "
    "HTTPS connections go out, other connections do not. What is refused fails with EACCES, and "
    "nd7 "
    "tells you what it was and which command the person can run to allow it; until then retrying "
    "or going around it is pointless.";

// Files that the settings of both agents name as commands, of the user's and of this project's.
std::vector<std::string> agent_commands(const PlanInput& input) {
  std::vector<std::string> out;
  const std::string& home = input.places.home;
  for (const std::string& file :
       {home + "/.claude/settings.json", home + "/.claude/settings.local.json",
        input.cwd + "/.claude/settings.json", input.cwd + "/.claude/settings.local.json",
        home + "/.codex/config.toml", home + "/.codex/hooks.json",
        input.cwd + "/.codex/config.toml", input.cwd + "/.codex/hooks.json"}) {
    auto text = os::read_file(file, std::size_t{4} << 20);
    if (!text) continue;
    for (const std::string& path : named_files(*text, home, input.cwd)) {
      struct stat st {};
      if (stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode)) out.push_back(path);
    }
  }
  return out;
}

// Sessions that ended without a word: their logs get a gap that says so, and the person a line.
void close_torn_sessions(const Places& places) {
  auto sessions = list_sessions(places);
  if (!sessions) return;
  for (const SessionInfo& session : *sessions) {
    const std::string mark = session.directory + "/inflight";
    if (session.running || access(mark.c_str(), F_OK) != 0) continue;
    const std::vector<std::string> inflight = Inflight::left_over(session.directory);
    auto log = LogFile::open(session.directory, session.id, true);
    if (!log) {
      say(fmt::format("session {} ended without a word, and its log cannot be continued: {}",
                      session.id, visible(log.error().text)));
      continue;
    }
    JsonWriter body;
    body.text("reason", "the supervisor ended without a word")
        .null("lost")
        .texts("inflight", inflight);
    if (!(*log)->append({"nd7", "gap", body.finish(), 0, 0})) continue;
    ::unlink(mark.c_str());
    say(fmt::format("session {} ended without a word ({}); its log says so", session.id,
                    inflight.empty() ? "nothing was in flight"
                                     : visible(inflight.front()) + " was in flight"));
  }
}

Result<> write_meta(const std::string& directory, const PlanInput& input) {
  JsonWriter meta;
  meta.text("id", input.id)
      .text("agent", input.agent)
      .path("project", input.cwd)
      .texts("argv", input.argv)
      .number("started_ns", system_clock().wall_ns())
      .number("pid", getpid())
      .text("agent_session", "");
  return os::replace_file(directory + "/meta.json", meta.finish() + "\n",
                          {.mode = 0600, .sync = false, .replace = true});
}

int say_failure(const Error& error) {
  say_error(error);
  return failed;
}

int start(const Arguments& args) {
  const std::vector<std::string>& words = args.rest();
  PlanInput input;
  input.cwd = current_directory();
  if (input.cwd.empty()) return say_failure(os_error("the current directory").error());
  input.environment = environment_now();
  const char* path = getenv("PATH");
  auto found = os::find_program(words[0], path != nullptr ? path : "/usr/bin:/bin", input.cwd);
  if (!found) {
    say_error(found.error());
    return found.error().os_errno == EACCES ? not_executable : not_found;
  }
  auto chain = os::program_chain(*found);
  if (!chain) return say_failure(chain.error());
  input.program = std::move(*chain);
  if (auto ok = check_standard_streams(); !ok) return say_failure(ok.error());
  auto places = find_places();
  if (!places) return say_failure(places.error());
  input.places = std::move(*places);
  input.id = new_session_id();
  input.nd7 = own_program();

  AgentKind kind = agent_by_program(*found);
  if (args.has("agent")) {
    const std::string name = args.value("agent");
    kind = agent_by_name(name);
    if (kind == AgentKind::none && name != "none")
      return say_failure(fail(fmt::format("'{}' is no agent that nd7 knows", visible(name)),
                              "say claude, codex or none")
                             .error());
  }
  const AgentRow& row = agent_row(kind);
  input.agent = kind == AgentKind::none ? "none" : row.name;
  for (const char* pattern : row.pass_env) input.agent_patterns.emplace_back(pattern);
  for (const char* host : row.hosts) input.agent_hosts.emplace_back(host);
  LaunchInput launch_input;
  launch_input.nd7 = input.nd7;
  launch_input.argv = words;
  launch_input.hooks_installed = hooks_installed(kind, input.places, input.nd7);
  Launch launched = launch(kind, launch_input);
  input.argv = std::move(launched.argv);
  input.agent_environment = std::move(launched.env);

  StartOptions& o = input.options;
  o.allow = args.values("allow");
  o.read = args.values("read");
  o.hosts = args.values("host");
  o.ports = args.values("port");
  o.listens = args.values("listen");
  o.sockets = args.values("socket");
  o.env = args.values("env");
  o.only_hosts = args.has("only-hosts");
  o.whole_home = args.has("whole-home");
  o.profile = args.value("profile");
  const char* forced = getenv("ND7_TEST_LANDLOCK_ABI"); // only ever lowers
  input.kernel = os::kernel_facts(forced != nullptr ? std::atoi(forced) : 0);
  input.agent_commands = agent_commands(input);
  auto plan = make_plan(input);
  if (!plan) return say_failure(plan.error());
  if (args.has("explain")) {
    print(plan_text(*plan));
    return finish_output(0);
  }
  for (const std::string& note : plan->notes) say(note);
  for (const std::string& lost : plan->not_enforced) say("not enforced here: " + lost);

  close_torn_sessions(input.places);
  SupervisorPlan& s = plan->supervisor;
  if (auto ok = make_private_directory(s.runtime); !ok) return say_failure(ok.error());
  auto log = LogFile::open(s.directory, input.id, true);
  if (!log) return say_failure(log.error());
  auto key = machine_key(input.places.state + "/keys");
  if (!key) return say_failure(key.error());
  (*log)->set_signer(key->sign, key->id);
  if (auto ok = write_meta(s.directory, input); !ok) return say_failure(ok.error());
  s.tty = terminal();
  s.note = note_for_model;
  s.hooks = hook_port(static_cast<std::size_t>(plan->settings.keep_content_bytes));
  std::string closed = "[";
  for (const std::string& fd : inherited())
    closed += (closed.size() > 1 ? "," : "") + json_quote(fd);
  s.start_body.pop_back();
  s.start_body += ",\"fds_closed\":" + closed + "]}";
  return run_front(std::move(s), **log);
}

} // namespace

const Usage usage_run{
    .name = "run",
    .summary = "start PROGRAM in a session",
    .arguments = "[--] PROGRAM [ARGS]",
    .options = options,
    .details =
        "The session may write in the current directory, in temporary files of its own and in the "
        "agent's state; read everything but keys and credentials; make HTTPS connections. "
        "nd7 allow widens that while it runs.\n\n"
        "Exit status: PROGRAM's; 125 if nd7 failed or refused to start, 126 if PROGRAM cannot be "
        "executed, 127 if it was not found.",
    .example = "nd7 run claude\nnd7 run --allow ~/data -- make test",
    .stop_at_first = true,
};

int cmd_run(int argc, char** argv) {
  auto args = parse_options(usage_run, argc, argv);
  if (!args) return args.error() == 0 ? 0 : failed;
  if (args->rest().empty()) {
    usage_error(usage_run, "PROGRAM is missing");
    return failed;
  }
  return start(*args);
}

} // namespace nd7
