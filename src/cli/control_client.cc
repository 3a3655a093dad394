#include "cli/control_client.h"

#include <cstring>
#include <iostream>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/fd.h"
#include "cli/ui.h"
#include "os/files.h"

namespace nd7 {
namespace {

constexpr std::size_t answer_bytes_max = std::size_t{16} << 20;
constexpr int wait_ms_max = 10000;

std::string describe(const SessionInfo& session) {
  auto meta = os::read_file(session.directory + "/meta.json", 1 << 20);
  std::string out = session.id;
  if (!meta) return out;
  auto object = scan_json_object(*meta);
  if (!object) return out;
  return fmt::format("{}  {}  {}", out, object->text("agent"), visible(object->text("project")));
}

} // namespace

Result<Reply> ask_session(const Places& places, const SessionInfo& session,
                          const std::string& request) {
  const std::string path = places.runtime + "/" + session.id + "/control";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return fail("the path of a socket is too long: " + path);
  std::memcpy(address.sun_path, path.data(), path.size());
  const Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return os_error("socket");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == EACCES)
      return fail("rules are changed from outside the session only", "run it in another terminal");
    return fail(fmt::format("session {} does not answer: {}", session.id, std::strerror(errno)),
                "nd7 sessions");
  }
  const std::string line = request + "\n";
  if (::send(fd.get(), line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    return os_error("ask the session");
  Reply out;
  while (!out.text.ends_with('\n')) {
    pollfd wait{fd.get(), POLLIN, 0};
    if (out.text.size() > answer_bytes_max || poll(&wait, 1, wait_ms_max) <= 0)
      return fail(fmt::format("session {} does not answer", session.id));
    char buffer[65536];
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n <= 0) return fail(fmt::format("session {} does not answer", session.id));
    out.text.append(buffer, static_cast<std::size_t>(n));
  }
  auto object = scan_json_object(out.text);
  if (!object) return std::unexpected(object.error());
  out.object = std::move(*object);
  if (!out.object.boolean("ok")) return fail(out.object.text("error"), out.object.text("hint"));
  return out;
}

Result<SessionInfo> choose_session(const Places& places, const std::string& id) {
  if (!id.empty()) {
    auto session = find_session(places, id);
    if (session && !session->running)
      return fail(fmt::format("session {} has ended", session->id), "nd7 sessions");
    return session;
  }
  auto sessions = list_sessions(places);
  if (!sessions && sessions.error().os_errno == EACCES)
    return fail(
        "nd7's records are closed here, as inside a session: rules are changed from outside "
        "only",
        "run it in another terminal");
  if (!sessions) return std::unexpected(sessions.error());
  std::vector<SessionInfo> running;
  for (SessionInfo& session : *sessions)
    if (session.running) running.push_back(std::move(session));
  if (running.empty()) return fail("no session is running", "nd7 run PROGRAM starts one");
  if (running.size() == 1) return running.front();
  std::string list;
  for (std::size_t i = 0; i < running.size(); ++i)
    list += fmt::format("  {}  {}\n", i + 1, describe(running[i]));
  if (!is_terminal(STDIN_FILENO) || !is_terminal(STDERR_FILENO))
    return fail("several sessions are running:\n" + list, "name one with --session ID");
  talk("several sessions are running:\n" + list + "which one? ");
  std::string answer;
  std::getline(std::cin, answer);
  const int number = std::atoi(answer.c_str());
  if (number < 1 || number > static_cast<int>(running.size())) return fail("none was chosen");
  return running[static_cast<std::size_t>(number) - 1];
}

} // namespace nd7
