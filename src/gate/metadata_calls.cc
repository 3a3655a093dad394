// What changes an inode and not a name: truncate, mode, owner, times, extended attributes; by path
// and by descriptor. Landlock sees none but truncate, and a read-only descriptor suffices for most:
// so all are decided on the object and performed.
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include <fmt/format.h>

#include "gate/gate.h"
#include "os/kernel_abi.h"
#include "os/remote.h"

namespace nd7 {
namespace {

constexpr std::size_t xattr_name_max = 255;
constexpr std::size_t xattr_size_max = 65536;

// The change to make, with everything read from the caller already.
struct Change {
  std::string what; // for the entry: "mode", "owner", ...
  std::string before, after;
  std::function<int(int object, bool link)> perform; // on an O_PATH or real descriptor
};

// Which object: by path, or a descriptor (then `path_index` is unused).
struct Target {
  bool by_descriptor = false;
  int descriptor = -1;
  int dirfd = AT_FDCWD;
  std::string path;
  os::Follow follow = os::Follow::last_too;
};

std::string time_text(const timespec& t) {
  if (t.tv_nsec == UTIME_NOW) return "now";
  if (t.tv_nsec == UTIME_OMIT) return "unchanged";
  return fmt::format("{}.{:09}", t.tv_sec, t.tv_nsec);
}

Result<std::pair<timespec, timespec>> read_times(const Call& call, unsigned index) {
  const pid_t tid = call.caller.tid;
  const std::uint64_t at = call.arg(index);
  timespec times[2]{{0, UTIME_NOW}, {0, UTIME_NOW}};
  if (at == 0) return std::pair(times[0], times[1]);
  if (call.name() == "utime") {
    utimbuf old{};
    if (auto ok = os::read_remote(tid, at, &old, sizeof old); !ok)
      return std::unexpected(ok.error());
    times[0] = {old.actime, 0};
    times[1] = {old.modtime, 0};
  } else if (call.name() == "utimes" || call.name() == "futimesat") {
    timeval old[2]{};
    if (auto ok = os::read_remote(tid, at, old, sizeof old); !ok)
      return std::unexpected(ok.error());
    for (int i = 0; i < 2; ++i) {
      if (old[i].tv_usec < 0 || old[i].tv_usec >= 1000000) return os_error("times", EINVAL);
      times[i] = {old[i].tv_sec, old[i].tv_usec * 1000};
    }
  } else if (auto ok = os::read_remote(tid, at, times, sizeof times); !ok) {
    return std::unexpected(ok.error());
  }
  return std::pair(times[0], times[1]);
}

Result<Target> target_of(const Call& call) {
  Target t;
  const std::string_view name = call.name();
  const bool plain = name == "truncate" || name == "chmod" || name == "chown" || name == "lchown" ||
                     name == "utime" || name == "utimes" || call.row->family == Family::setxattr ||
                     call.row->family == Family::removexattr;
  switch (call.row->family) {
  case Family::fchmod:
  case Family::fchown:
  case Family::fsetxattr:
  case Family::fremovexattr:
    t.by_descriptor = true;
    t.descriptor = call.fd(0);
    return t;
  default:
    break;
  }
  const unsigned index = plain ? 0 : 1;
  if (!plain) t.dirfd = call.fd(0);
  unsigned flags = 0;
  if (name == "fchmodat2" || name == "utimensat") flags = call.word(3);
  if (name == "fchownat") flags = call.word(4);
  if ((flags & ~static_cast<unsigned>(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) != 0)
    return os_error("flags", EINVAL);
  if (name == "lchown" || name == "lsetxattr" || name == "lremovexattr" ||
      (flags & AT_SYMLINK_NOFOLLOW) != 0)
    t.follow = os::Follow::all_but_last;
  if (call.arg(index) == 0 && (name == "utimensat" || name == "futimesat")) {
    t.by_descriptor = true;
    t.descriptor = t.dirfd;
    return t;
  }
  auto path = path_argument(call, index);
  if (!path) return std::unexpected(path.error());
  t.path = std::move(*path);
  if (t.path.empty() && (flags & AT_EMPTY_PATH) != 0 && t.dirfd != AT_FDCWD) {
    t.by_descriptor = true;
    t.descriptor = t.dirfd;
  } else if (t.path.empty() && (flags & AT_EMPTY_PATH) != 0) {
    t.path = ".";
  }
  return t;
}

std::string mode_text(mode_t mode) {
  return fmt::format("{:04o}", mode & 07777U);
}

// Reads every argument once and makes the change; the object's state before is filled in later.
Result<Change> change_of(const Call& call) {
  Change out;
  const pid_t tid = call.caller.tid;
  const std::string_view name = call.name();
  const bool plain = name == "truncate" || name == "chmod" || name == "chown" || name == "lchown" ||
                     name == "utime" || name == "utimes";
  const unsigned first = plain ? 1 : 2;
  switch (call.row->family) {
  case Family::truncate: {
    const auto length = static_cast<off_t>(call.arg(1));
    if (length < 0) return os_error("length", EINVAL);
    out.what = "size";
    out.after = std::to_string(length);
    out.perform = [length](int object, bool) { return truncate(FdPath(object).c_str(), length); };
    break;
  }
  case Family::chmod:
  case Family::fchmod: {
    const auto mode =
        static_cast<mode_t>(call.arg(call.row->family == Family::fchmod ? 1 : first)) & 07777U;
    out.what = "mode";
    out.after = mode_text(mode);
    out.perform = [mode](int object, bool link) {
      if (link) {
        errno = EOPNOTSUPP;
        return -1;
      }
      return chmod(FdPath(object).c_str(), mode);
    };
    break;
  }
  case Family::chown:
  case Family::fchown: {
    const unsigned at = call.row->family == Family::fchown ? 1 : first;
    const auto uid = static_cast<uid_t>(call.arg(at));
    const auto gid = static_cast<gid_t>(call.arg(at + 1));
    out.what = "owner";
    out.after = fmt::format("{}:{}", static_cast<int>(uid), static_cast<int>(gid));
    out.perform = [uid, gid](int object, bool) {
      return fchownat(object, "", uid, gid, AT_EMPTY_PATH);
    };
    break;
  }
  case Family::utime: {
    auto times = read_times(call, name == "utime" || name == "utimes" ? 1 : 2);
    if (!times) return std::unexpected(times.error());
    out.what = "times";
    out.after = time_text(times->first) + " " + time_text(times->second);
    const bool now = call.arg(name == "utime" || name == "utimes" ? 1 : 2) == 0;
    out.perform = [t = *times, now](int object, bool) {
      const timespec both[2] = {t.first, t.second};
      return static_cast<int>(
          syscall(SYS_utimensat, object, "", now ? nullptr : both, AT_EMPTY_PATH));
    };
    break;
  }
  case Family::setxattr:
  case Family::fsetxattr: {
    auto key = os::read_remote_string(tid, call.arg(1), xattr_name_max);
    if (!key) return os_error("name", errno_of(key.error()) == ENAMETOOLONG ? ERANGE : EFAULT);
    if (key->empty()) return os_error("name", ERANGE);
    const std::uint64_t size = call.arg(3);
    if (size > xattr_size_max) return os_error("value", E2BIG);
    auto value = std::make_shared<std::string>(size, '\0');
    if (size > 0)
      if (auto ok = os::read_remote(tid, call.arg(2), value->data(), size); !ok)
        return std::unexpected(ok.error());
    const int flags = static_cast<int>(call.word(4));
    out.what = "xattr " + *key;
    out.after = fmt::format("{} bytes", size);
    out.perform = [key = *key, value, flags](int object, bool) {
      return setxattr(FdPath(object).c_str(), key.c_str(), value->data(), value->size(), flags);
    };
    break;
  }
  case Family::removexattr:
  case Family::fremovexattr: {
    auto key = os::read_remote_string(tid, call.arg(1), xattr_name_max);
    if (!key) return os_error("name", errno_of(key.error()) == ENAMETOOLONG ? ERANGE : EFAULT);
    out.what = "xattr " + *key;
    out.after = "removed";
    out.perform = [key = *key](int object, bool) {
      return removexattr(FdPath(object).c_str(), key.c_str());
    };
    break;
  }
  default:
    return os_error("system call", ENOSYS);
  }
  return out;
}

std::string state_before(const Change& change, const struct stat& st) {
  if (change.what == "size") return std::to_string(st.st_size);
  if (change.what == "mode") return mode_text(st.st_mode);
  if (change.what == "owner") return fmt::format("{}:{}", st.st_uid, st.st_gid);
  if (change.what == "times")
    return fmt::format("{}.{:09} {}.{:09}", st.st_atim.tv_sec, st.st_atim.tv_nsec,
                       st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
  return {};
}

// The place of a descriptor that the caller holds: a duplicate of it, named by the kernel.
Result<os::Place> place_of_descriptor(Worker& w, Call& call, int number) {
  auto taken = os::take_fd(call.caller.pidfd, number);
  if (!taken) return std::unexpected(taken.error());
  if ((fcntl(taken->get(), F_GETFL) & O_PATH) != 0 && call.row->family != Family::chown &&
      call.row->family != Family::chmod && call.row->family != Family::utime)
    return os_error("descriptor", EBADF);
  os::Place place;
  if (fstat(taken->get(), &place.st) != 0) return os_error("fstat");
  place.exists = true;
  place.last = os::LastPart::magic;
  place.real = w.resolver.readlink_of(taken->get());
  constexpr std::string_view deleted = " (deleted)";
  if (place.real.ends_with(deleted)) {
    // Without any name left it is the session's own; with another name it may be anything.
    if (place.st.st_nlink == 0)
      place.real = "unlinked:" + place.real;
    else
      place.real.resize(place.real.size() - deleted.size());
  }
  place.object = std::move(*taken);
  return place;
}

} // namespace

Answer metadata_call(Context& c, Worker& w, Call& call) {
  auto target = target_of(call);
  if (!target) return Answer::error(errno_of(target.error()));
  auto change = change_of(call);
  if (!change) return Answer::error(errno_of(change.error()));
  auto place = target->by_descriptor
                   ? place_of_descriptor(w, call, target->descriptor)
                   : place_of(c, w, call, target->dirfd, target->path, target->follow);
  if (!place) return Answer::error(errno_of(place.error()));
  if (!place->exists) return Answer::error(ENOENT);
  const bool link = S_ISLNK(place->st.st_mode);
  if (!place->is_anonymous() && !S_ISCHR(place->st.st_mode)) {
    if (place->on_proc) return Answer::error(EPERM);
    Verdict verdict = judge(c, call, Access::write, *place);
    // Git sets the mode of the lock file and of its configuration; that is no change of content.
    if (verdict.decision == Decision::judge && change->what != "size")
      verdict.decision = Decision::allow;
    if (!verdict.allowed())
      return deny(c, call, *place, change->what == "size" ? "write" : "meta", verdict,
                  [&](JsonWriter& body) { body.text("change", change->what); });
  } else if (S_ISCHR(place->st.st_mode)) {
    // Terminals of the session may be handed around (mode, owner); other devices not.
    const std::lock_guard hold(c.tables);
    bool own = place->real == c.facts.tty && !c.facts.tty.empty();
    for (const unsigned number : c.ptys)
      own = own || place->real == fmt::format("/dev/pts/{}", number);
    if (!own)
      return deny(c, call, *place, "meta",
                  {Decision::deny, "devices: only the session's own terminals", {}, Judge::none},
                  [&](JsonWriter& body) { body.text("change", change->what); });
  }
  // keep: the metadata before is in the entry itself.
  w.inflight->begin(w.slot, call.name(), place->real);
  const std::string before = state_before(*change, place->st);
  const int result = change->perform(place->object.get(), link);
  const int error = result < 0 ? errno : 0;
  JsonWriter body = c.recorder.effect(call.process(), call.name(), error, "performed");
  body.path("path", place->real).text("change", change->what);
  if (before.empty())
    body.null("before");
  else
    body.text("before", before);
  body.text("after", change->after);
  c.recorder.append(call.process(), change->what == "size" ? "write" : "meta", body);
  return error != 0 ? Answer::error(error) : Answer::value(0);
}

} // namespace nd7
