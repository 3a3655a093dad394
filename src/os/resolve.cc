#include "os/resolve.h"

#include <charconv>
#include <cstdlib>
#include <deque>
#include <vector>

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <fmt/format.h>

#include "os/remote.h"

namespace nd7::os {
namespace {

constexpr int links_max = 40; // as the kernel's own limit
constexpr ino_t proc_root_inode = 1;

int open_without_links(int dir, const char* path, std::uint64_t flags) {
  open_how how{};
  how.flags = flags;
  how.resolve = RESOLVE_NO_SYMLINKS;
  return static_cast<int>(syscall(SYS_openat2, dir, path, &how, sizeof how));
}

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> out;
  std::size_t at = 0;
  while (at < path.size()) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (end > at) out.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

pid_t as_pid(std::string_view text) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  return error == std::errc{} && end == text.data() + text.size() && pid > 0 ? pid : 0;
}

std::string child_name(const std::string& parent, std::string_view leaf) {
  std::string out = parent == "/" ? std::string{} : parent;
  out += '/';
  out += leaf;
  return out;
}

std::string parent_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

// "/proc/123/..." -> 123.
pid_t proc_owner_of(std::string_view path) {
  if (!path.starts_with("/proc/")) return 0;
  path.remove_prefix(6);
  return as_pid(path.substr(0, path.find('/')));
}

} // namespace

bool is_procfs(int fd, const struct stat& st) {
  // Only file systems without a device have major 0: ask further just for those.
  if (major(st.st_dev) != 0) return false;
  struct statfs fs {};
  return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

std::string resolved_as_far(const std::string& path) {
  std::string head = path, tail;
  while (head.size() > 1) {
    if (char* real = ::realpath(head.c_str(), nullptr)) {
      std::string out = std::string_view(real) == "/" ? "" : real;
      std::free(real);
      return out + tail;
    }
    const std::size_t slash = head.rfind('/');
    if (slash == std::string::npos) return path;
    tail = head.substr(slash) + tail;
    head.resize(slash);
  }
  return tail.empty() ? "/" : tail;
}

bool is_below(std::string_view path, std::string_view root) {
  if (root == "/") return true;
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

std::string lexical_join(std::string_view base, std::string_view path) {
  std::string out;
  const auto add = [&](std::string_view text) {
    for (const std::string_view part : split(text)) {
      if (part == ".") continue;
      if (part == "..") {
        out.resize(out.rfind('/') == std::string::npos ? 0 : out.rfind('/'));
        continue;
      }
      out += '/';
      out += part;
    }
  };
  if (!path.starts_with('/')) add(base);
  add(path);
  return out.empty() ? "/" : out;
}

Result<Resolver> Resolver::make() {
  Resolver out;
  out.own_directory_ = unshare(CLONE_FS) == 0;
  out.own_fds_.reset(::open("/proc/thread-self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!out.own_fds_) return os_error("open /proc/thread-self/fd");
  return out;
}

std::string Resolver::readlink_of(int fd) const {
  char name[16];
  *fmt::format_to(name, "{}", fd) = 0;
  char buffer[PATH_MAX * 2];
  const ssize_t n = readlinkat(own_fds_.get(), name, buffer, sizeof buffer);
  return n > 0 ? std::string(buffer, static_cast<std::size_t>(n)) : std::string{};
}

std::string Resolver::name_of(int fd) const {
  // fchdir+getcwd is three times quicker than readlink, but for directories only.
  char buffer[PATH_MAX];
  if (own_directory_ && fchdir(fd) == 0 && getcwd(buffer, sizeof buffer) != nullptr &&
      buffer[0] == '/')
    return buffer;
  return readlink_of(fd);
}

Fd Resolver::reopen(int fd, int flags) const {
  char name[16];
  *fmt::format_to(name, "{}", fd) = 0;
  return Fd(openat(own_fds_.get(), name, flags | O_CLOEXEC | O_NOCTTY));
}

Result<Base> Resolver::base(const Caller& caller, int dirfd) const {
  Base out;
  if (dirfd == AT_FDCWD) {
    out.fd.reset(openat(caller.proc, "cwd", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!out.fd) return os_error("the caller's working directory");
  } else {
    auto taken = take_fd(caller.pidfd, dirfd);
    if (!taken) return std::unexpected(taken.error());
    out.fd = std::move(*taken);
  }
  out.path = name_of(out.fd.get());
  return out;
}

Result<Place> Resolver::quick(const Base& base, std::string_view path, Follow follow) const {
  Place place;
  std::string text(path);
  while (text.size() > 1 && text.ends_with('/')) {
    text.pop_back();
    place.trailing_slash = true;
  }
  const std::size_t slash = text.rfind('/');
  std::string leaf = slash == std::string::npos ? text : text.substr(slash + 1);
  if (leaf.empty() || leaf == "." || leaf == "..") return os_error("needs a walk", ELOOP);
  std::string directory = slash == std::string::npos ? "."
                          : slash == 0               ? "/"
                                                     : text.substr(0, slash);
  const int at = base.fd ? base.fd.get() : AT_FDCWD;
  place.parent.reset(open_without_links(at, directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!place.parent) return os_error("parent");
  place.real = lexical_join(base.path, text);
  place.object.reset(openat(place.parent.get(), leaf.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  place.leaf = std::move(leaf);
  if (!place.object) {
    if (errno != ENOENT) return os_error("leaf");
    return place;
  }
  if (fstat(place.object.get(), &place.st) != 0) return os_error("fstat");
  place.exists = true;
  if (S_ISLNK(place.st.st_mode) && (follow == Follow::last_too || place.trailing_slash))
    return os_error("a link", ELOOP);
  if (place.trailing_slash && !S_ISDIR(place.st.st_mode)) return os_error("leaf", ENOTDIR);
  return place;
}

Result<Place> Resolver::walk(const Caller& caller, const Base& base, std::string_view path,
                             Follow follow) const {
  std::string text(path); // owns what `pending` points into
  std::deque<std::string> pending;
  bool trailing = false;
  const auto prepend = [&](std::string_view more) {
    const auto parts = split(more);
    pending.insert(pending.begin(), parts.begin(), parts.end());
  };
  prepend(text);
  trailing = text.ends_with('/');

  Fd current;
  std::string name;
  const auto to_root = [&] {
    current.reset(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    name = "/";
  };
  if (text.starts_with('/') || !base.fd) {
    to_root();
  } else {
    current = reopen(base.fd.get(), O_PATH);
    name = base.path;
  }
  if (!current) return os_error("where the path starts");

  Fd parent;
  std::string leaf;
  LastPart last = text.starts_with('/') ? LastPart::root : LastPart::dot;
  int links = 0;
  bool must_be_directory = false; // a link's own text ended in a slash

  while (!pending.empty()) {
    std::string part = std::move(pending.front());
    pending.pop_front();
    if (part.size() > NAME_MAX) return os_error("name", ENAMETOOLONG);
    struct stat here {};
    if (fstat(current.get(), &here) != 0) return os_error("fstat");
    if (!S_ISDIR(here.st_mode)) return os_error("not a directory", ENOTDIR);
    if (part == ".") {
      if (faccessat(current.get(), ".", X_OK, AT_EACCESS) != 0) return os_error("search");
      last = LastPart::dot;
      parent.reset();
      continue;
    }
    if (part == "..") {
      Fd up(openat(current.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
      if (!up) return os_error("..");
      current = std::move(up);
      name = parent_name(name);
      last = LastPart::dot_dot;
      parent.reset();
      continue;
    }
    const bool proc = is_procfs(current.get(), here);
    if (proc) {
      if (!is_below(name, "/proc")) return os_error("a procfs elsewhere", EACCES);
      if (here.st_ino == proc_root_inode) {
        // "self" is the caller, never us.
        if (part == "self") part = std::to_string(caller.tgid);
        if (part == "thread-self") {
          part = std::to_string(caller.tgid);
          pending.push_front(std::to_string(caller.tid));
          pending.push_front("task");
        }
      }
    }
    const bool last_now = pending.empty();
    Fd next(openat(current.get(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!next) {
      if (errno != ENOENT || !last_now) return os_error("component");
      Place place;
      place.real = child_name(readlink_of(current.get()), part);
      place.on_proc = proc;
      place.proc_owner = proc ? proc_owner_of(place.real) : 0;
      place.foreign_proc = place.proc_owner != 0 && !(*caller.in_session)(place.proc_owner);
      place.parent = std::move(current);
      place.leaf = std::move(part);
      place.trailing_slash = trailing || must_be_directory;
      return place;
    }
    struct stat st {};
    if (fstat(next.get(), &st) != 0) return os_error("fstat");
    const bool follow_this =
        !last_now || follow == Follow::last_too || trailing || must_be_directory;
    if (S_ISLNK(st.st_mode) && follow_this) {
      const pid_t owner = proc ? proc_owner_of(name) : 0;
      if (owner != 0) {
        // A magic link. Of a foreign process none is followed: through us it would open what the
        // caller may not (measured: pipes and memfds of outside processes).
        if (!(*caller.in_session)(owner)) return os_error("another process's link", EACCES);
        Fd target(openat(current.get(), part.c_str(), O_PATH | O_CLOEXEC));
        if (!target) return os_error("magic link");
        name = readlink_of(target.get());
        current = std::move(target);
        parent.reset();
        leaf.clear();
        last = LastPart::magic;
        continue;
      }
      if (++links > links_max) return os_error("too many links", ELOOP);
      char buffer[PATH_MAX];
      const ssize_t n = readlinkat(next.get(), "", buffer, sizeof buffer);
      if (n < 0) return os_error("readlink");
      if (n == 0) return os_error("empty link", ENOENT);
      const std::string_view target(buffer, static_cast<std::size_t>(n));
      if (last_now && target.ends_with('/')) must_be_directory = true;
      prepend(target);
      if (target.starts_with('/')) to_root();
      if (!current) return os_error("root");
      if (pending.empty()) last = LastPart::root;
      continue;
    }
    parent = std::move(current);
    leaf = part;
    current = std::move(next);
    name = child_name(name, part);
    last = LastPart::name;
  }

  Place place;
  place.object = std::move(current);
  if (fstat(place.object.get(), &place.st) != 0) return os_error("fstat");
  place.exists = true;
  place.last = last;
  place.parent = std::move(parent);
  place.leaf = std::move(leaf);
  place.trailing_slash = trailing || must_be_directory;
  if (place.trailing_slash && !S_ISDIR(place.st.st_mode)) return os_error("leaf", ENOTDIR);
  // The kernel's own word for where this is now; what we pieced together may be older.
  place.real = readlink_of(place.object.get());
  if (place.real.ends_with(" (deleted)") && place.st.st_nlink == 0)
    // Unlinked meanwhile, or reached through a process's own descriptor: an object without a name.
    place.real = last == LastPart::magic ? "unlinked:" + place.real : name;
  place.on_proc = is_procfs(place.object.get(), place.st);
  if (place.on_proc) {
    if (!is_below(place.real, "/proc")) return os_error("a procfs elsewhere", EACCES);
    place.proc_owner = proc_owner_of(place.real);
    place.foreign_proc = place.proc_owner != 0 && !(*caller.in_session)(place.proc_owner);
  }
  return place;
}

Result<Place> Resolver::resolve(const Caller& caller, const Base& base, std::string_view path,
                                Follow follow) const {
  if (path.empty()) return os_error("empty path", ENOENT);
  if (path.size() >= PATH_MAX) return os_error("path", ENAMETOOLONG);
  const std::string lexical = lexical_join(base.path, path);
  if (!is_below(lexical, "/proc") && !is_below(lexical, "/dev")) {
    auto place = quick(base, path, follow);
    if (place || place.error().os_errno != ELOOP) {
      // A procfs mounted elsewhere must not be reached the quick way.
      if (place && place->exists && is_procfs(place->object.get(), place->st))
        return os_error("a procfs elsewhere", EACCES);
      return place;
    }
  }
  return walk(caller, base, path, follow);
}

} // namespace nd7::os
