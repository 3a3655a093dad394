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

std::uint64_t inode_of(int fd) {
  struct stat st {};
  return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

// Is the socket that the session bound under this key still that one? `is_it` looks at what the
// kernel says of it. Without unix_diag (0 was kept) the key alone has to do.
template <class Key, class Is>
bool is_own(Context& c, const std::map<Key, std::uint64_t>& table, const Key& key, Is is_it) {
  std::uint64_t inode = 0;
  {
    const std::lock_guard hold(c.tables);
    const auto at = table.find(key);
    if (at == table.end()) return false;
    inode = at->second;
  }
  if (inode == 0) return true;
  const auto socket = os::unix_socket(inode);
  return socket && *socket && is_it(**socket);
}

// Does any live socket stand behind this file? A datagram socket's connect tells without reaching
// the other side: EPROTOTYPE for a stream, and between datagram sockets it only notes a peer.
bool anybody_behind(const sockaddr_un& through) {
  const Fd probe(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  return !probe ||
         ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&through), sizeof through) == 0 ||
         errno != ECONNREFUSED;
}

// On a pool thread when the socket blocks: a full backlog must not hold a receiver, the server may
// be waiting for it. `object` keeps the file that `to` leads through.
Answer perform(const Call& call, Fd socket, const sockaddr_storage& to, socklen_t size,
               Fd object = {}) {
  const bool blocking = (fcntl(socket.get(), F_GETFL) & O_NONBLOCK) == 0;
  auto held = std::make_shared<std::pair<Fd, Fd>>(std::move(socket), std::move(object));
  auto run = [held, to, size, tid = call.caller.tid]() -> Answer {
    const int error = Pool::run_interruptibly(tid, [&] {
      return ::connect(held->first.get(), reinterpret_cast<const sockaddr*>(&to), size);
    });
    return error != 0 ? Answer::error(error) : Answer::value(0);
  };
  if (!blocking) return run();
  return Answer::later(std::move(run));
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
    const bool own =
        is_own(c, c.abstract_bound, name.text, [&](const os::UnixSocket& socket_found) {
          return socket_found.name == '\0' + name.text;
        });
    const Verdict verdict = decide_socket(*call.policy, shown, own);
    if (!verdict.allowed()) return refuse(c, call, shown, verdict);
    // Performed from our table, never continued: a raced address must not become a path.
    return perform(call, std::move(socket), to, size);
  }
  auto place = place_of(c, w, call, AT_FDCWD, name.text, os::Follow::last_too);
  if (!place) return Answer::error(errno_of(place.error()));
  if (!place->exists) return Answer::error(ENOENT);
  if (!S_ISSOCK(place->st.st_mode)) return Answer::error(ECONNREFUSED);
  const bool own = is_own(c, c.bound, id_of(place->st), [&](const os::UnixSocket& socket_found) {
    return socket_found.bound && socket_found.bound->inode == place->st.st_ino;
  });
  const Verdict verdict = decide_socket(*call.policy, place->real, own);
  // Through our descriptor of the very socket that was judged.
  sockaddr_un through{};
  through.sun_family = AF_UNIX;
  const FdPath path(place->object.get());
  std::memcpy(through.sun_path, path.c_str(), std::strlen(path.c_str()) + 1);
  if (!verdict.allowed()) {
    // A socket nobody stands behind says ECONNREFUSED, and programs clean up after that (tmux).
    if (place->st.st_uid == geteuid() && !anybody_behind(through))
      return Answer::error(ECONNREFUSED);
    return refuse(c, call, place->real, verdict);
  }
  sockaddr_storage to_object{};
  std::memcpy(&to_object, &through, sizeof through);
  return perform(call, std::move(socket), to_object, sizeof through, std::move(place->object));
}

Answer bind_unix(Context& c, Worker& w, Call& call, Fd socket, const sockaddr_storage& to,
                 socklen_t size) {
  const auto perform_bind = [&] {
    return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&to), size);
  };
  if (to.ss_family != AF_UNIX) return Answer::of(perform_bind());
  const Name name = name_of(to, size);
  if (name.unnamed || name.abstract) {
    if (perform_bind() != 0) return Answer::error(errno);
    sockaddr_storage own{};
    socklen_t own_size = sizeof own;
    getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &own_size);
    const std::uint64_t inode = inode_of(socket.get());
    const auto diag = os::unix_socket(inode);
    const std::lock_guard hold(c.tables);
    c.abstract_bound[name_of(own, own_size).text] = diag && *diag ? inode : 0;
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
  if (perform_bind() != 0) return Answer::error(errno);
  // What came into being must be what was judged: a link on the way may have been turned.
  struct stat st {};
  bool same = fstatat(place->parent.get(), place->leaf.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
              S_ISSOCK(st.st_mode);
  std::uint64_t inode = inode_of(socket.get());
  const auto diag = os::unix_socket(inode);
  // Compared by inode: btrfs shows another device than stat does.
  if (same && diag && *diag && (*diag)->bound)
    same = (*diag)->bound->inode == st.st_ino;
  else
    inode = 0; // the kernel does not tell
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
    c.bound[id_of(st)] = inode;
  }
  remember_made(c, *call.policy, place->real, st);
  JsonWriter body = c.recorder.effect(call.process(), call.name(), 0, "performed");
  body.path("path", place->real).text("mode", "created").null("size_before").null("preimage");
  c.recorder.append(call.process(), "write", body);
  return Answer::value(0);
}

} // namespace nd7
