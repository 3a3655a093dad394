#include "cli/codex_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"

namespace nd7 {
namespace {

constexpr std::uint64_t answer_ns_max = 15'000'000'000;
constexpr std::uint64_t end_ns_max = 5'000'000'000;
constexpr std::size_t output_bytes_max = std::size_t{16} << 20;

// The client as a child with its standard input and output on one socket.
class Client {
public:
  static Result<Client> start(const std::string& program, const std::string& directory) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
      return os_error("socketpair");
    }
    Client client;
    client.fd_.reset(pair[0]);
    const Fd theirs(pair[1]);
    const Fd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    const std::array<const char*, 3> argv = {program.c_str(), "app-server", nullptr};
    client.pid_ = ::fork();
    if (client.pid_ < 0) return os_error("fork");
    if (client.pid_ == 0) {
      // Between fork and exec: only calls that are safe there.
      ::setpgid(0, 0);
      if (::chdir(directory.c_str()) != 0 || ::dup2(theirs.get(), STDIN_FILENO) < 0 ||
          ::dup2(theirs.get(), STDOUT_FILENO) < 0 || ::dup2(null.get(), STDERR_FILENO) < 0) {
        ::_exit(127);
      }
      ::execv(program.c_str(), const_cast<char* const*>(argv.data()));
      ::_exit(127);
    }
    return client;
  }
  Client() = default;
  Client(Client&& other) noexcept
      : fd_(std::move(other.fd_)), pid_(std::exchange(other.pid_, -1)),
        buffer_(std::move(other.buffer_)) {}
  Client& operator=(Client&&) = delete;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  // End of input ends it; a client that hangs is killed with what it started.
  ~Client() {
    if (pid_ <= 0) return;
    fd_.reset();
    const std::uint64_t until = system_clock().boot_ns() + end_ns_max;
    while (::waitpid(pid_, nullptr, WNOHANG) == 0) {
      if (system_clock().boot_ns() > until) {
        ::kill(-pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        return;
      }
      ::poll(nullptr, 0, 10);
    }
  }

  bool send(std::string_view line) {
    while (!line.empty()) {
      const ssize_t sent = ::send(fd_.get(), line.data(), line.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      line.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // The answer to request `id`, as text.
  Result<std::string> answer(std::int64_t id) {
    const std::uint64_t until = system_clock().boot_ns() + answer_ns_max;
    for (;;) {
      for (std::size_t end; (end = buffer_.find('\n')) != std::string::npos;) {
        const std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        const auto message = scan_json_object(line);
        if (message && message->integer("id", -1) == id) return line;
      }
      const std::uint64_t now = system_clock().boot_ns();
      if (now >= until) return fail("codex did not answer in time");
      pollfd wait{.fd = fd_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&wait, 1, static_cast<int>((until - now) / 1'000'000) + 1) <= 0) continue;
      std::array<char, 4096> chunk;
      const ssize_t got = ::recv(fd_.get(), chunk.data(), chunk.size(), 0);
      if (got <= 0) return fail("codex ended without an answer");
      buffer_.append(chunk.data(), static_cast<std::size_t>(got));
      if (buffer_.size() > output_bytes_max) return fail("codex talks too much");
    }
  }

private:
  Fd fd_;
  pid_t pid_ = -1;
  std::string buffer_;
};

Result<JsonObject> member_object(std::string_view raw) {
  if (raw.empty()) return fail("codex answered in a form nd7 does not know");
  return scan_json_object(raw);
}

} // namespace

Result<std::vector<CodexListedHook>> ask_codex_hooks(const std::string& program,
                                                     const std::string& directory) {
  auto client = Client::start(program, directory);
  if (!client) return std::unexpected(client.error());
  const std::string cwds = JsonWriter().texts("cwds", {directory}).finish();
  const bool sent =
      client->send(R"({"id":0,"method":"initialize","params":{"clientInfo":{"name":"nd7",)"
                   R"("version":"0"},"capabilities":{"experimentalApi":true}}})"
                   "\n{\"method\":\"initialized\"}\n") &&
      client->send(
          JsonWriter().number("id", 1).text("method", "hooks/list").raw("params", cwds).finish() +
          "\n");
  if (!sent) return fail("codex ended without an answer");
  const auto line = client->answer(1);
  if (!line) return std::unexpected(line.error());
  const auto message = scan_json_object(*line);
  if (!message) return std::unexpected(message.error());
  const auto result = member_object(message->find("result"));
  if (!result) return std::unexpected(result.error());
  const auto places = scan_json_array(result->find("data"));
  if (!places || places->empty()) return fail("codex answered in a form nd7 does not know");
  const auto place = scan_json_object(places->front());
  if (!place) return std::unexpected(place.error());
  const auto listed = scan_json_array(place->find("hooks"));
  if (!listed) return std::unexpected(listed.error());
  std::vector<CodexListedHook> hooks;
  for (const std::string_view raw : *listed) {
    const auto hook = scan_json_object(raw);
    if (!hook) return std::unexpected(hook.error());
    hooks.push_back({.key = hook->text("key"),
                     .command = hook->text("command"),
                     .trust = hook->text("trustStatus"),
                     .enabled = hook->boolean("enabled", true)});
  }
  return hooks;
}

} // namespace nd7
