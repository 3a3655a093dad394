#include "gate/unix_sockets.h"

#include <cstddef>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include "os/sock_diag.h"

namespace nd7 {
namespace {

constexpr std::size_t path_offset = offsetof(sockaddr_un, sun_path);

ObjectId id_of(const struct stat& st) {
  return {st.st_dev, st.st_ino};
}

struct Name {
  bool abstract = false;
  bool unnamed = false;
  std::string text; // path, or the abstract name without its first NUL
};

Name name_of(const sockaddr_storage& storage, socklen_t size) {
  Name out;
  const char* bytes = reinterpret_cast<const char*>(&storage) + path_offset;
  const std::size_t length = size > path_offset ? size - path_offset : 0;
  if (length == 0) {
    out.unnamed = true;
  } else if (bytes[0] == 0) {
    out.abstract = true;
    out.text.assign(bytes + 1, length - 1);
  } else {
    out.text.assign(bytes, strnlen(bytes, length));
  }
  return out;
}

// Doors of the user's machine, so that a refusal says what was tried.
const char* known_door(std::string_view path) {
  struct Door {
    const char* part;
    const char* what;
  };
  static constexpr Door doors[] = {
      {"docker.sock", "the Docker engine"},
      {"podman.sock", "the Podman engine"},
      {"containerd.sock", "containerd"},
      {"/systemd/private", "the user's systemd"},
      {"/systemd/resolve", "systemd-resolved"},
      {"dbus/system_bus_socket", "the D-Bus system bus"},
      {"/bus", "the D-Bus session bus"},
      {"S.gpg-agent", "gpg-agent"},
      {"/keyring/", "the keyring"},
      {"ssh-agent", "ssh-agent"},
      {"/agent.", "ssh-agent"},
      {".X11-unix/", "the X server"},
      {"wayland-", "the Wayland compositor"},
      {"pulse/native", "PulseAudio"},
      {"pipewire-", "PipeWire"},
      {"nscd/socket", "nscd"},
      {"/tmux-", "tmux"},
      {"/screen/", "screen"},
      {"vscode-", "Visual Studio Code"},
      {"/dev/log", "the system log"},
      {"postgresql", "PostgreSQL"},
      {"mysqld", "MySQL"},
      {"redis", "Redis"},
  };
  for (const Door& door : doors)
    if (path.contains(door.part)) return door.what;
  return nullptr;
}

Answer refuse(Context& c, Call& call, const std::string& shown, Verdict verdict) {
  if (const char* door = known_door(shown)) verdict.rule += fmt::format(" ({})", door);
  // Name services are tried at every look-up and programs go on without them.
  const bool quiet = shown.ends_with("nscd/socket") || shown.contains("systemd/resolve") ||
                     shown.contains("systemd/userdb") || shown == "/dev/log";
  c.recorder.refuse(
      call.process(), call.name(), "connect", shown, verdict,
      [&](JsonWriter& body) { body.path("addr", shown); },
      quiet ? Telling::none : telling_of(c, call.process(), shown, "connect"));
  return Answer::error(EACCES);
}

// Leads the caller to the session's hook socket. The client gets a name of its own first, by which
// the accepting side learns which process called.
Answer connect_hook(Context& c, Call& call, Fd socket) {
  sockaddr_un none{};
  none.sun_family = AF_UNIX;
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&none), sizeof(sa_family_t)) != 0)
    return Answer::error(errno);
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
    return Answer::error(errno);
  {
    const std::lock_guard hold(c.hook_lock);
    c.hook_callers[name_of(own, size).text] = call.process().pid;
  }
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (c.facts.hook_socket.size() >= sizeof to.sun_path) return Answer::error(ENAMETOOLONG);
  std::memcpy(to.sun_path, c.facts.hook_socket.data(), c.facts.hook_socket.size());
  return Answer::of(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to));
}

} // namespace

std::string hook_address(uid_t uid) {
  return fmt::format("nd7.hook.{}", uid);
}

Answer connect_unix(Context& c, Worker& w, Call& call, Fd socket, const sockaddr_storage& to,
                    socklen_t size) {
  if (to.ss_family != AF_UNIX)
    return Answer::of(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), size));
  const Name name = name_of(to, size);
  if (name.unnamed) return Answer::error(EINVAL);
  if (name.abstract) {
    if (name.text == hook_address(geteuid())) return connect_hook(c, call, std::move(socket));
    const std::string shown = "@" + name.text;
    bool own;
    {
      const std::lock_guard hold(c.tables);
      own = c.abstract_bound.contains(name.text);
    }
    const Verdict verdict = decide_socket(*call.policy, shown, own);
    if (!verdict.allowed()) return refuse(c, call, shown, verdict);
    // Performed from our table, never continued: a raced address must not become a path.
    return Answer::of(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), size));
  }
  auto place = place_of(c, w, call, AT_FDCWD, name.text, os::Follow::last_too);
  if (!place) return Answer::error(errno_of(place.error()));
  if (!place->exists) return Answer::error(ENOENT);
  if (!S_ISSOCK(place->st.st_mode)) return Answer::error(ECONNREFUSED);
  bool own;
  {
    const std::lock_guard hold(c.tables);
    own = c.bound.contains(id_of(place->st));
  }
  const Verdict verdict = decide_socket(*call.policy, place->real, own);
  // Through our descriptor of the very socket that was judged.
  sockaddr_un through{};
  through.sun_family = AF_UNIX;
  const FdPath path(place->object.get());
  std::memcpy(through.sun_path, path.c_str(), std::strlen(path.c_str()) + 1);
  if (!verdict.allowed()) {
    // A socket nobody listens on says ECONNREFUSED, and programs clean up after that (tmux).
    const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (place->st.st_uid == geteuid() && probe &&
        ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&through), sizeof through) != 0 &&
        errno == ECONNREFUSED)
      return Answer::error(ECONNREFUSED);
    return refuse(c, call, place->real, verdict);
  }
  const bool blocking = (fcntl(socket.get(), F_GETFL) & O_NONBLOCK) == 0;
  auto held = std::make_shared<Fd>(std::move(socket));
  auto object = std::make_shared<Fd>(std::move(place->object));
  auto run = [held, object, through, tid = call.caller.tid]() -> Answer {
    const int result =
        ::connect(held->get(), reinterpret_cast<const sockaddr*>(&through), sizeof through);
    if (result < 0 && errno == EINTR) return Answer::error(Pool::interrupted_error(tid));
    return Answer::of(result);
  };
  if (!blocking) return run();
  return Answer::later(std::move(run));
}

Answer bind_unix(Context& c, Worker& w, Call& call, Fd socket, const sockaddr_storage& to,
                 socklen_t size) {
  const auto perform = [&] {
    return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&to), size);
  };
  if (to.ss_family != AF_UNIX) return Answer::of(perform());
  const Name name = name_of(to, size);
  if (name.unnamed || name.abstract) {
    if (perform() != 0) return Answer::error(errno);
    sockaddr_storage own{};
    socklen_t own_size = sizeof own;
    getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &own_size);
    const std::lock_guard hold(c.tables);
    c.abstract_bound.insert(name_of(own, own_size).text);
    return Answer::value(0);
  }
  auto base = w.resolver.base(call.caller, AT_FDCWD);
  if (!base) return Answer::error(errno_of(base.error()));
  auto place = w.resolver.resolve(call.caller, *base, name.text, os::Follow::all_but_last);
  if (!place) return Answer::error(errno_of(place.error()));
  if (place->exists || place->last != os::LastPart::name) return Answer::error(EADDRINUSE);
  if (place->on_proc) return Answer::error(EPERM);
  const Verdict verdict = judge(c, call, Access::write, *place);
  if (!verdict.allowed()) return deny(c, call, *place, "write", verdict);
  take_umask(call);
  // The caller's own string, from the caller's own directory: getsockname and every peer show it.
  if (fchdir(base->fd.get()) != 0) return Answer::error(errno);
  const std::unique_lock hold_names(c.names);
  if (perform() != 0) return Answer::error(errno);
  // What came into being must be what was judged: a link on the way may have been turned.
  struct stat st {};
  bool same = fstatat(place->parent.get(), place->leaf.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
              S_ISSOCK(st.st_mode);
  struct stat socket_st {};
  if (same && fstat(socket.get(), &socket_st) == 0) {
    auto diag = os::unix_socket(socket_st.st_ino);
    // Compared by inode: btrfs shows another device than stat does.
    if (diag && *diag && (*diag)->bound) same = (*diag)->bound->inode == st.st_ino;
  }
  if (!same) {
    JsonWriter body;
    body.text("reason",
              "a unix socket was bound elsewhere than judged: a link was turned meanwhile")
        .number("lost", 0)
        .path("inflight", place->real);
    c.recorder.note("nd7", "gap", body.finish());
    return Answer::error(EACCES);
  }
  {
    const std::lock_guard hold(c.tables);
    c.bound[id_of(st)] = place->real;
  }
  remember_made(c, *call.policy, place->real, st);
  JsonWriter body = c.recorder.effect(call.process(), call.name(), 0, "performed");
  body.path("path", place->real).text("mode", "created").null("size_before").null("preimage");
  c.recorder.append(call.process(), "write", body);
  return Answer::value(0);
}

} // namespace nd7
