// execve and execveat: recorded and let continue. Nobody can perform an exec for another, and none
// needs to: Landlock decides on the object, no_new_privs and the filter go along. What was really
// executed is confirmed from /proc at the process's next call.
#include <algorithm>
#include <cstring>

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "core/chain.h"
#include "gate/gate.h"
#include "os/remote.h"

namespace nd7 {
namespace {

constexpr std::size_t arguments_max = 256;
constexpr std::size_t argument_bytes_max = 4096;   // one argument in the entry
constexpr std::size_t arguments_bytes_max = 32768; // all of them
constexpr std::size_t search_bytes_max = 1 << 20;  // of one argument, to find an announced command

struct Arguments {
  std::vector<std::string> whole; // for joining
  std::string json;               // for the entry, cut
};

Arguments read_arguments(const Call& call, unsigned index) {
  Arguments out;
  std::vector<std::string> shown;
  std::size_t total = 0;
  std::uint64_t at = call.arg(index);
  for (std::size_t i = 0; at != 0; ++i, at += sizeof(std::uint64_t)) {
    auto pointer =
        os::read_remote<std::uint64_t>(call.caller.tid, os::RemotePtr<std::uint64_t>{at});
    if (!pointer || *pointer == 0) break;
    if (i >= arguments_max || total > arguments_bytes_max) {
      shown.push_back("...");
      break;
    }
    auto text = os::read_remote_string(call.caller.tid, *pointer, search_bytes_max);
    if (!text) break;
    out.whole.push_back(*text);
    if (text->size() > argument_bytes_max) {
      text->resize(argument_bytes_max);
      *text += "...";
    }
    total += text->size();
    shown.push_back(std::move(*text));
  }
  out.json = "[";
  for (const std::string& text : shown) {
    if (out.json.size() > 1) out.json += ',';
    out.json += json_quote(text);
  }
  out.json += ']';
  return out;
}

// The hash of what this session wrote itself, and of memory files: a path would say nothing.
std::string content_hash(const os::Place& place) {
  const Fd fd(::open(FdPath(place.object.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return {};
  constexpr std::size_t hashed_bytes_max = std::size_t{64} << 20;
  std::string bytes;
  char buffer[65536];
  ssize_t n;
  while (bytes.size() < hashed_bytes_max && (n = ::read(fd.get(), buffer, sizeof buffer)) > 0)
    bytes.append(buffer, static_cast<std::size_t>(n));
  return blake3_hex(bytes);
}

} // namespace

Answer exec_call(Context& c, Worker& w, Call& call) {
  const bool at = call.name() == "execveat";
  const unsigned index = at ? 1 : 0;
  auto path = path_argument(call, index);
  if (!path) return Answer::error(errno_of(path.error()));
  Process& process = call.process();
  const unsigned flags = at ? call.word(4) : 0;
  const int dirfd = at ? call.fd(0) : AT_FDCWD;
  std::string asked = *path;
  if (asked.empty()) {
    if (!at || (flags & AT_EMPTY_PATH) == 0) return Answer::error(ENOENT);
    asked = "/proc/self/fd/" + std::to_string(dirfd);
  }
  auto place = place_of(c, w, call, asked.starts_with("/proc/self/fd/") ? AT_FDCWD : dirfd, asked,
                        (flags & AT_SYMLINK_NOFOLLOW) != 0 ? os::Follow::all_but_last
                                                           : os::Follow::last_too);
  // What is not there is the kernel's to say: shells try every directory of the PATH.
  if (!place) {
    const int error = errno_of(place.error());
    if (error == EACCES) return Answer::error(EACCES);
    return Answer::go_on();
  }
  if (!place->exists) return Answer::go_on();
  if (!place->is_anonymous()) {
    // A file that may not be read may not be loaded either (an interpreter would show it).
    const Verdict verdict = judge(c, call, Access::read, *place);
    if (!verdict.allowed()) return deny(c, call, *place, "exec", verdict);
  }
  Arguments arguments = read_arguments(call, index + 1);
  std::string environment;
  {
    // The new environment, only as far as the agents' own marks go.
    constexpr std::size_t variables_max = 1024;
    std::uint64_t pointer_at = call.arg(index + 2);
    for (std::size_t i = 0; pointer_at != 0 && i < variables_max; ++i, pointer_at += 8) {
      auto pointer =
          os::read_remote<std::uint64_t>(call.caller.tid, os::RemotePtr<std::uint64_t>{pointer_at});
      if (!pointer || *pointer == 0) break;
      char head[24];
      auto some = os::read_remote_some(call.caller.tid, *pointer, head, sizeof head);
      if (!some || *some < 19 || std::memcmp(head, "CODEX_TOOL_CALL_ID=", 19) != 0) continue;
      if (auto text = os::read_remote_string(call.caller.tid, *pointer, 256)) environment += *text;
      break;
    }
  }
  const Join join = c.joins.of_exec(process, arguments.whole, environment);
  const bool hashed = place->is_anonymous() || place->real.starts_with("/memfd:") ||
                      judge(c, call, Access::write, *place).allowed();
  os::Base cwd;
  if (auto found = w.resolver.base(call.caller, AT_FDCWD)) cwd = std::move(*found);
  {
    const std::lock_guard hold(process.lock);
    process.join = join;
    process.pending_exec = place->real;
    process.exec_pending = true;
  }
  c.recorder.counts.execs++;
  JsonWriter body = c.recorder.effect(process, call.name(), 0, "observed");
  body.path("path", place->real).raw("argv", arguments.json).path("cwd", cwd.path);
  if (hashed && S_ISREG(place->st.st_mode))
    body.text("hash", content_hash(*place));
  else
    body.null("hash");
  c.recorder.append(process, "exec", body);
  return Answer::go_on();
}

void confirm_exec(Context& c, Process& process) {
  char buffer[PATH_MAX];
  const ssize_t n =
      readlink(fmt::format("/proc/{}/exe", process.pid).c_str(), buffer, sizeof buffer);
  std::string pending;
  {
    const std::lock_guard hold(process.lock);
    pending.swap(process.pending_exec);
    process.exec_pending = false;
    if (n > 0) process.exe.assign(buffer, static_cast<std::size_t>(n));
  }
  // A script runs as its interpreter; anything else that differs is said.
  if (n > 0 && !pending.empty() && process.exe != pending) {
    JsonWriter body = c.recorder.effect(process, "execve", 0, "observed");
    body.path("path", process.exe).null("argv").null("cwd").null("hash").path("asked", pending);
    c.recorder.append(process, "exec", body);
  }
}

} // namespace nd7
