// `nd7 hook AGENT`: what the agents' hooks call. The payload comes on standard input; the answer
// goes to standard output, exactly as this agent and event accept it, or nothing at all.
//
// It stands in the way of every tool call, and both agents go on when a hook fails, so there is
// nothing to gain from failing: the exit status is 0 whatever happens, and the time is bounded.
// Errors are said only with ND7_DEBUG set.
//
// In a session the payload goes to the supervisor, over an abstract socket whose name the gate
// leads to the session's own; outside nobody listens there, and the record is written here.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "agents/agent.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/ui.h"
#include "os/files.h"
#include "session/log_file.h"
#include "session/session.h"

namespace nd7 {
namespace {

constexpr std::size_t payload_bytes_max = std::size_t{256} << 20;
constexpr std::size_t answer_bytes_max = std::size_t{64} << 10;
constexpr int time_ms_max = 5000;
// Claude Code's SessionEnd hooks share 1.5 s, Codex clamps its last two to 1 to 3 s.
constexpr int last_words_ms_max = 1000;

extern "C" void give_up(int) {
  ::_exit(0);
}

// Bounds everything that follows, also a lock or a disk that does not answer.
void limit_time(int ms) {
  struct sigaction action {};
  action.sa_handler = give_up;
  ::sigaction(SIGALRM, &action, nullptr);
  sigset_t alarm;
  ::sigemptyset(&alarm);
  ::sigaddset(&alarm, SIGALRM);
  ::sigprocmask(SIG_UNBLOCK, &alarm, nullptr); // whatever the agent blocked
  const itimerval timer{.it_interval = {},
                        .it_value = {.tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000}};
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

void debug(const std::string& text) {
  if (::getenv("ND7_DEBUG") != nullptr) say("hook: " + text);
}

// All of standard input; what exceeds the limit is read and dropped, so that the agent's write
// never breaks.
std::string read_payload() {
  std::string payload;
  std::array<char, std::size_t{64} << 10> chunk;
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return payload;
    const auto room = payload_bytes_max - payload.size();
    payload.append(chunk.data(), std::min(room, static_cast<std::size_t>(got)));
  }
}

// The events at which the agent waits only a moment. A look at the text is enough: it decides
// nothing but our own patience.
bool is_last_words(std::string_view payload) {
  const std::string_view head = payload.substr(0, 4096);
  for (const std::string_view event : {"\"SessionEnd\"", "\"Interrupt\""}) {
    const std::size_t at = head.find(event);
    if (at == std::string_view::npos) continue;
    const std::string_view before = head.substr(0, at);
    if (before.find_last_not_of(" :\t\r\n") != std::string_view::npos &&
        before.substr(0, before.find_last_not_of(" :\t\r\n") + 1)
            .ends_with("\"hook_event_name\"")) {
      return true;
    }
  }
  return false;
}

// The session's hook socket; nullopt outside a session.
std::optional<Fd> connect_session() {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return std::nullopt;
  // A leading NUL: the abstract namespace.
  const std::string name = "nd7.hook." + std::to_string(::getuid());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  int done;
  do {
    done = ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length);
  } while (done != 0 && errno == EINTR);
  if (done != 0) return std::nullopt;
  // Anybody may take an abstract name: another user's listener is no session of ours.
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      peer.uid != ::geteuid()) {
    debug("a process of another user listens at the session's address");
    return std::nullopt;
  }
  return fd;
}

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// Hands the payload over; what to print.
std::string ask_session(int fd, AgentKind kind, std::string_view payload) {
  const std::string header = JsonWriter()
                                 .number("v", 1)
                                 .text("agent", agent_row(kind).name)
                                 .count("bytes", payload.size())
                                 .number("ppid", ::getppid())
                                 .finish();
  if (!send_all(fd, header + "\n") || !send_all(fd, payload)) {
    debug("the session did not take the payload");
    return {};
  }
  std::string answer;
  std::array<char, 4096> chunk;
  while (answer.size() < answer_bytes_max && answer.find('\n') == std::string::npos) {
    const ssize_t got = ::recv(fd, chunk.data(), chunk.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    answer.append(chunk.data(), static_cast<std::size_t>(got));
  }
  const auto object = scan_json_object(answer);
  if (!object) {
    debug("the session's answer: " + object.error().text);
    return {};
  }
  return object->text("print");
}

// Outside a session: the record goes to a log named by the agent's own session id.
Result<> record(AgentKind kind, std::string_view payload, std::int64_t ts, std::uint64_t mono) {
  const Intent intent = read_hook(kind, {.payload = payload, .hook_ppid = ::getppid()});
  const Result<Places> places = find_places();
  if (!places) return std::unexpected(places.error());
  const std::string id = is_safe_id(intent.agent_session)
                             ? intent.agent_session
                             : std::string("unknown-") + agent_row(kind).name;
  const std::string directory = session_directory(*places, id);
  const auto log = LogFile::open(directory, id, false);
  if (!log) return std::unexpected(log.error());
  if (const std::string meta = directory + "/meta.json"; ::access(meta.c_str(), F_OK) != 0) {
    std::array<char, 4096> cwd{};
    const char* here = ::getcwd(cwd.data(), cwd.size());
    const std::string text = JsonWriter()
                                 .number("v", 1)
                                 .text("id", id)
                                 .number("started_ns", ts)
                                 .text("agent", agent_row(kind).name)
                                 .text("agent_session", intent.agent_session)
                                 .path("project", here != nullptr ? here : "")
                                 .boolean("sandbox", false)
                                 .finish();
    // Many hooks may be first at once: one of them names it.
    const auto made = os::replace_file(meta, text + "\n", {.sync = false, .replace = false});
    if (!made && made.error().os_errno != EEXIST) debug(made.error().text);
  }
  const auto entry = (*log)->append(
      {.source = intent.source, .kind = intent.kind, .body = intent.body, .ts = ts, .mono = mono});
  if (!entry) return std::unexpected(entry.error());
  return {};
}

} // namespace

const Usage usage_hook{
    .name = "hook",
    .summary = "record what an agent's hook says (called by the agents)",
    .arguments = "AGENT",
    .details =
        "The agents call it with the payload on standard input; nd7 init registers it. In a\n"
        "session the payload goes to the session, else to a log named by the agent's own\n"
        "session id. Prints nothing, or the JSON that this agent and event accept. The exit\n"
        "status is always 0; with ND7_DEBUG set, errors are told on stderr.",
    .example = "nd7 hook claude < payload.json",
    .hidden = true};

int cmd_hook(int argc, char** argv) {
  const std::int64_t ts = system_clock().wall_ns();
  const std::uint64_t mono = system_clock().boot_ns();
  const std::string_view agent = argc > 1 ? argv[1] : "";
  if (agent == "--help" || agent == "-h") {
    print(help_text(usage_hook));
    return 0;
  }
  limit_time(time_ms_max);
  std::signal(SIGPIPE, SIG_IGN);
  const AgentKind kind = agent_by_name(agent);
  const std::string payload = read_payload();
  if (kind == AgentKind::none) {
    debug("unknown agent, try: nd7 hook claude");
    return 0;
  }
  if (is_last_words(payload)) limit_time(last_words_ms_max);
  if (const std::optional<Fd> session = connect_session()) {
    const std::string answer = ask_session(session->get(), kind, payload);
    if (const auto written = os::write_all(STDOUT_FILENO, answer); !written) {
      debug(written.error().text);
    }
    return 0;
  }
  if (const auto recorded = record(kind, payload, ts, mono); !recorded) {
    debug(recorded.error().text);
  }
  return 0;
}

} // namespace nd7
