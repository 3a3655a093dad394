#include "gate/hook_server.h"

#include <cstddef>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/json.h"
#include "core/telling.h"
#include "gate/gate.h"

namespace nd7 {
namespace {

constexpr std::size_t header_bytes_max = 4096;
constexpr std::size_t payload_bytes_max = std::size_t{256} << 20;
constexpr int wait_ms_max = 10000;
constexpr int agent_depth_max = 3; // agent, its launcher, a shell around the hook

bool receive_some(int fd, std::string& into, std::size_t size_max) {
  pollfd wait{fd, POLLIN, 0};
  if (poll(&wait, 1, wait_ms_max) <= 0) return false;
  char buffer[65536];
  const ssize_t n = ::read(fd, buffer, std::min(sizeof buffer, size_max));
  if (n <= 0) return false;
  into.append(buffer, static_cast<std::size_t>(n));
  return true;
}

std::string client_name(int connection) {
  sockaddr_un peer{};
  socklen_t size = sizeof peer;
  if (getpeername(connection, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return {};
  constexpr std::size_t at = offsetof(sockaddr_un, sun_path);
  return size > at + 1 ? std::string(peer.sun_path + 1, size - at - 1) : std::string{};
}

} // namespace

Result<Fd> listen_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return fail("the path of a socket is too long: " + path,
                "set XDG_RUNTIME_DIR to a shorter directory");
  std::memcpy(address.sun_path, path.data(), path.size());
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return os_error("socket");
  ::unlink(path.c_str());
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return os_error("bind " + path);
  if (::chmod(path.c_str(), 0600) != 0 || ::listen(fd.get(), 128) != 0)
    return os_error("listen " + path);
  return fd;
}

bool HookServer::from_agent(pid_t pid) {
  // Up to the session's first process, over processes that belong to no tool call.
  for (int depth = 0; depth <= agent_depth_max; ++depth) {
    if (pid == c_.tracees.root()) return depth > 0;
    const auto process = c_.tracees.process(pid);
    if (process != nullptr) {
      const std::lock_guard hold(process->lock);
      if (!process->join.call.empty()) return false;
    }
    auto stat = read_proc_stat(pid);
    if (!stat) return false;
    pid = stat->parent;
  }
  return false;
}

// Codex has no event after a patch that failed, so what will be refused is said before: the model
// reads it together with the failure.
std::vector<Told> HookServer::foreseen(const std::string& agent, const Intent& intent) {
  std::vector<Told> out;
  if (agent != "codex" || intent.kind != "tool_call") return out;
  const auto policy = c_.policy.now();
  for (const std::string& path : intent.paths) {
    os::Place place;
    place.real = os::resolved_as_far(path);
    place.exists = lstat(place.real.c_str(), &place.st) == 0;
    const Verdict verdict = decide(*policy, action_of(c_, *policy, Access::write, place));
    if (verdict.allowed() || verdict.decision == Decision::judge) continue;
    out.push_back({"write", place.real, verdict.rule, verdict.open_with, 1});
    c_.recorder.told_before(place.real);
  }
  return out;
}

void HookServer::serve(Fd connection) {
  pid_t pid = 0;
  {
    const std::string name = client_name(connection.get());
    const std::lock_guard hold(c_.hook_lock);
    if (const auto at = c_.hook_callers.find(name); at != c_.hook_callers.end()) {
      pid = at->second;
      c_.hook_callers.erase(at);
    }
  }
  if (pid == 0) return; // not led here by the gate
  const bool trusted = from_agent(pid);
  std::string bytes;
  std::size_t line_end;
  while ((line_end = bytes.find('\n')) == std::string::npos) {
    if (bytes.size() > header_bytes_max || !receive_some(connection.get(), bytes, header_bytes_max))
      return;
  }
  auto header = scan_json_object(std::string_view(bytes).substr(0, line_end));
  if (!header) return;
  const std::string agent = header->text("agent");
  const auto wanted = static_cast<std::size_t>(header->integer("bytes", 0));
  const int parent = static_cast<int>(header->integer("ppid", 0));
  if (wanted > payload_bytes_max) return;
  bytes.erase(0, line_end + 1);
  while (bytes.size() < wanted)
    if (!receive_some(connection.get(), bytes, wanted - bytes.size())) break; // keep what came

  Intent intent = port_.read(agent, bytes, parent);
  if (!trusted && intent.body.ends_with('}')) {
    intent.body.pop_back();
    intent.body += intent.body.size() > 1 ? ",\"below_tool\":true}" : "\"below_tool\":true}";
  }
  c_.recorder.note(intent.source, trusted ? intent.kind : "hook", intent.body);
  std::string answer;
  if (trusted) {
    if (intent.kind == "tool_call") c_.joins.announce(intent);
    // Only an event that takes text may use up what is to be told.
    if (!port_.answer(agent, intent.event, "?").empty()) {
      std::vector<Told> told = foreseen(agent, intent);
      for (const Refusal& refusal : c_.recorder.take_untold())
        told.push_back(
            {refusal.operation, refusal.object, refusal.rule, refusal.open_with, refusal.times});
      std::string text = tell(told);
      if (intent.event == "SessionStart" && !note_.empty())
        text = text.empty() ? note_ : note_ + "\n" + text;
      if (!text.empty()) answer = port_.answer(agent, intent.event, text);
    }
    if (intent.kind == "tool_result" || intent.event == "PostToolUseFailure")
      c_.joins.finished(intent.tool_use_id);
  }
  JsonWriter reply;
  const std::string line = reply.text("print", answer).finish() + "\n";
  (void)!::send(connection.get(), line.data(), line.size(), MSG_NOSIGNAL);
}

} // namespace nd7
