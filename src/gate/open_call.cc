// open, openat, creat: the call that matters most, by the recipe of docs/architecture.md.
//
// The quick way: the lexical name is judged first, then opened with RESOLVE_NO_SYMLINKS, so that
// the name was true or the open failed with ELOOP. The careful way: resolve to a Place, judge its
// real name and object, reopen the object itself.
#include <algorithm>

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "gate/gate.h"
#include "gate/judged.h"
#include "os/remote.h"

namespace nd7 {
namespace {

constexpr int tmpfile_bit = O_TMPFILE & ~O_DIRECTORY;
constexpr int create_attempts_max = 8; // somebody may create and remove the name under us

struct Request {
  int dirfd = AT_FDCWD;
  std::string path;
  int flags = 0;
  mode_t mode = 0;

  bool reads() const { return (flags & O_ACCMODE) != O_WRONLY; }
  bool makes_unnamed() const { return (flags & tmpfile_bit) != 0; }
  bool writes() const {
    return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0 || makes_unnamed();
  }
  bool creates() const { return (flags & O_CREAT) != 0 && !makes_unnamed(); }
  bool exclusive() const { return creates() && (flags & O_EXCL) != 0; }
  // What we open with: never a controlling terminal for us, never blocking in a receiver.
  int own_flags() const { return flags | O_NOCTTY | O_NONBLOCK | O_CLOEXEC; }
};

struct Opened {
  Fd fd;
  int error = 0;
  bool created = false;
  bool truncated = false;
  off_t size_before = 0;
};

int open_without_links(int dir, const char* path, int flags, mode_t mode, std::uint64_t resolve) {
  struct open_how how {};
  how.flags = static_cast<std::uint64_t>(static_cast<std::uint32_t>(flags));
  how.mode = (flags & O_CREAT) != 0 || (flags & tmpfile_bit) != 0 ? mode & 07777U : 0;
  how.resolve = resolve;
  return static_cast<int>(syscall(SYS_openat2, dir, path, &how, sizeof how));
}

ObjectId id_of(const struct stat& st) {
  return {st.st_dev, st.st_ino};
}

// Gives the caller what it asked for: the flag it did not set goes away again.
Answer hand_over(Context& c, Call& call, const Request& request, const std::string& real,
                 Opened opened) {
  if ((request.flags & O_NONBLOCK) == 0) {
    const int now = fcntl(opened.fd.get(), F_GETFL);
    fcntl(opened.fd.get(), F_SETFL, now & ~O_NONBLOCK);
  }
  Process& process = call.process();
  if (request.writes() || opened.created) {
    const Join join = process.joined();
    Join own = join;
    if (own.call.empty()) own = c.joins.of_own_write(real);
    JsonWriter body = c.recorder.effect(process, call.name(), 0, "performed");
    body.path("path", real)
        .text("mode", opened.created     ? "created"
                      : opened.truncated ? "truncated"
                                         : "existing");
    if (opened.created)
      body.null("size_before");
    else
      body.number("size_before", opened.size_before);
    body.null("preimage");
    if (join.call.empty() && !own.call.empty()) body.text("own_write_of", own.call);
    c.recorder.counts.writes++;
    c.recorder.append(process, "write", body);
  } else {
    c.recorder.read(process, call.name(), real, "performed");
  }
  return Answer::descriptor(std::move(opened.fd), (request.flags & O_CLOEXEC) != 0);
}

Answer failed(Context& c, Call& call, const Request& request, const std::string& real, int error) {
  // Programs live on ENOENT and EEXIST: only failed writes for other reasons are worth an entry.
  if (request.writes() && error != ENOENT && error != EEXIST && error != ENOTDIR &&
      error != EISDIR && error != ELOOP) {
    JsonWriter body = c.recorder.effect(call.process(), call.name(), error, "performed");
    body.path("path", real);
    c.recorder.append(call.process(), "write", body);
  }
  return Answer::error(error);
}

// Blocks until the other end of a FIFO is there, on a pool thread: one open, as the caller asked
// for it. `early` is what a non-blocking open got before it was known to be a FIFO; an end that met
// it already may be gone again, so it counts.
Answer open_fifo_later(Context& c, Call& call, const Request& request, const std::string& real,
                       Fd object, Fd early = Fd()) {
  auto held = std::make_shared<Fd>(std::move(object));
  auto kept = std::make_shared<Fd>(std::move(early));
  const int flags = (request.flags & ~(O_CREAT | O_EXCL | O_NOFOLLOW | O_TRUNC)) | O_NOCTTY;
  auto shared = std::make_shared<Request>(request);
  return Answer::later([&c, tracee = call.tracee, row = call.row, policy = call.policy,
                        caller = call.caller, notification = call.notification, shared, held, kept,
                        flags, real]() -> Answer {
    Call again{notification, row, tracee, policy, caller};
    Opened opened;
    pollfd met{kept->get(), POLLIN, 0};
    if (*kept && poll(&met, 1, 0) > 0) {
      opened.fd = std::move(*kept);
      return hand_over(c, again, *shared, real, std::move(opened));
    }
    const int error = Pool::run_interruptibly(caller.tid, [&] {
      opened.fd.reset(::open(FdPath(held->get()).c_str(), flags | O_CLOEXEC));
      return opened.fd.get();
    });
    if (error != 0) return Answer::error(error);
    kept->reset();
    Request asked = *shared;
    asked.flags |= O_NONBLOCK; // opened as asked: nothing to take off again
    return hand_over(c, again, asked, real, std::move(opened));
  });
}

// --- devices
// --------------------------------------------------------------------------------------

constexpr unsigned pts_major_first = 136, pts_major_last = 143;

bool is_harmless_device(dev_t device) {
  static constexpr std::pair<unsigned, unsigned> list[] = {{1, 3}, {1, 5}, {1, 7}, {1, 8},
                                                           {1, 9}, {5, 0}, {5, 2}};
  return std::any_of(std::begin(list), std::end(list), [&](const auto& row) {
    return row.first == major(device) && row.second == minor(device);
  });
}

std::string terminal_name(int tty) {
  const unsigned number = static_cast<unsigned>(tty);
  const unsigned major_number = number >> 8 & 0xfff;
  const unsigned minor_number = (number & 0xff) | (number >> 12 & 0xfff00);
  if (major_number >= pts_major_first && major_number <= pts_major_last)
    return "/dev/pts/" + std::to_string((major_number - pts_major_first) * 256 + minor_number);
  if (major_number == 4 && minor_number < 64) return "/dev/tty" + std::to_string(minor_number);
  if (major_number == 4) return "/dev/ttyS" + std::to_string(minor_number - 64);
  return {};
}

Answer open_device(Context& c, Call& call, const Request& request, const os::Place& place) {
  const dev_t device = place.st.st_rdev;
  const bool character = S_ISCHR(place.st.st_mode);
  const bool pts = character && major(device) >= pts_major_first && major(device) <= pts_major_last;
  std::string name = place.real;
  bool allowed = character && is_harmless_device(device);
  if (pts) {
    const unsigned number = (major(device) - pts_major_first) * 256 + minor(device);
    const std::lock_guard hold(c.tables);
    allowed = c.ptys.contains(number) || (!c.facts.tty.empty() && place.real == c.facts.tty);
  } else if (!allowed && character && place.real == c.facts.tty) {
    allowed = true;
  }
  if (!allowed) {
    FileAction action = action_of(c, *call.policy, Access::read, place);
    // A grant names the device itself.
    const bool granted =
        std::any_of(call.policy->rules.begin(), call.policy->rules.end(), [&](const Rule& rule) {
          return rule.origin != Origin::builtin && rule.path == place.real &&
                 (rule.effect == Effect::allow_read || rule.effect == Effect::allow_write);
        });
    if (!granted)
      return deny(c, call, place, request.writes() ? "write" : "read",
                  {Decision::deny,
                   "devices: only null, zero, full, random, urandom, tty, ptmx and "
                   "the session's own terminals",
                   "nd7 allow --read " + shell_word(action.path), Judge::none});
  }
  if (character && device == makedev(5, 0)) {
    // /dev/tty means the caller's terminal; we have none.
    auto stat = read_proc_stat(call.caller.tgid);
    name = stat ? terminal_name(stat->tty) : "";
    if (name.empty()) return Answer::error(ENXIO);
  }
  Opened opened;
  const int flags = (request.own_flags() & ~(O_CREAT | O_EXCL | O_NOFOLLOW | O_TRUNC));
  opened.fd.reset(name == place.real ? ::open(FdPath(place.object.get()).c_str(), flags)
                                     : ::open(name.c_str(), flags));
  if (!opened.fd) return Answer::error(errno);
  if (character && device == makedev(5, 2)) {
    unsigned number = 0;
    if (ioctl(opened.fd.get(), TIOCGPTN, &number) == 0) {
      const std::lock_guard hold(c.tables);
      c.ptys.insert(number);
    }
  }
  if ((request.flags & O_NONBLOCK) == 0)
    fcntl(opened.fd.get(), F_SETFL, fcntl(opened.fd.get(), F_GETFL) & ~O_NONBLOCK);
  return Answer::descriptor(std::move(opened.fd), (request.flags & O_CLOEXEC) != 0);
}

// --- procfs
// ---------------------------------------------------------------------------------------

// Of outside processes only what `ps` needs.
bool is_public_proc_file(std::string_view leaf) {
  static constexpr std::string_view list[] = {"stat", "statm", "status", "comm", "cmdline"};
  return std::find(std::begin(list), std::end(list), leaf) != std::end(list);
}

bool is_writable_proc_file(std::string_view leaf) {
  static constexpr std::string_view list[] = {"oom_score_adj", "oom_adj",         "comm",
                                              "mem",           "coredump_filter", "clear_refs",
                                              "timerslack_ns", "autogroup",       "sched"};
  return std::find(std::begin(list), std::end(list), leaf) != std::end(list);
}

// Empty when a procfs place may be opened so, else the rule that refuses.
std::string proc_refusal(const Request& request, const os::Place& place) {
  const std::string_view leaf = std::string_view(place.real).substr(place.real.rfind('/') + 1);
  if (place.foreign_proc) {
    const bool of_process = std::count(place.real.begin(), place.real.end(), '/') == 3;
    if (!request.writes() && (place.is_directory() || (of_process && is_public_proc_file(leaf))))
      return {};
    return "processes: of those outside only stat, statm, status, comm and cmdline can be read";
  }
  if (!request.writes()) return {};
  if (place.proc_owner != 0 && is_writable_proc_file(leaf)) return {};
  return "processes: kernel settings are not written from a session";
}

// --- the two ways
// -----------------------------------------------------------------------------------

// What decide() says about this open of a place, both ways of access.
Verdict judge_open(Context& c, Call& call, const Request& request, const os::Place& place,
                   std::string_view* would) {
  *would = "read";
  if (request.reads()) {
    Verdict verdict = judge(c, call, Access::read, place);
    if (!verdict.allowed()) return verdict;
  }
  if (request.writes() || (request.creates() && !place.exists)) {
    *would = "write";
    return judge(c, call, Access::write, place);
  }
  return {Decision::allow, {}, {}, Judge::none};
}

Opened open_existing(Worker& w, const Request& request, const os::Place& place) {
  Opened out;
  int flags = request.own_flags() & ~(O_CREAT | O_EXCL | O_NOFOLLOW);
  const bool truncate_after =
      (flags & O_TRUNC) != 0 && S_ISREG(place.st.st_mode) && (flags & O_ACCMODE) != O_RDONLY;
  if (truncate_after) flags &= ~O_TRUNC;
  out.size_before = place.st.st_size;
  out.truncated = (request.flags & O_TRUNC) != 0;
  out.fd = w.resolver.reopen(place.object.get(), flags);
  if (!out.fd) {
    out.error = errno;
    return out;
  }
  if (truncate_after && ftruncate(out.fd.get(), 0) != 0) out.error = errno;
  return out;
}

Answer careful_open(Context& c, Worker& w, Call& call, const Request& request) {
  const bool last_too = (request.flags & O_NOFOLLOW) == 0 && !request.exclusive();
  for (int attempt = 0; attempt < create_attempts_max; ++attempt) {
    auto resolved = place_of(c, w, call, request.dirfd, request.path,
                             last_too ? os::Follow::last_too : os::Follow::all_but_last);
    if (!resolved) {
      const int error = errno_of(resolved.error());
      if (error == EACCES && resolved.error().text.starts_with("another process")) {
        c.recorder.refuse(call.process(), call.name(), "read", request.path,
                          {Decision::deny,
                           "processes: descriptors and directories of those outside are closed",
                           {},
                           Judge::none},
                          [&](JsonWriter& body) { body.path("path", request.path); });
      }
      return failed(c, call, request, request.path, error);
    }
    os::Place& place = *resolved;
    if (place.exists && request.exclusive()) return Answer::error(EEXIST);
    if (!place.exists && (!request.creates() || place.last != os::LastPart::name))
      return Answer::error(ENOENT);
    if (!place.exists && place.trailing_slash) return Answer::error(EISDIR);
    if (place.exists && S_ISLNK(place.st.st_mode)) return Answer::error(ELOOP);
    if (place.exists && (request.flags & O_DIRECTORY) != 0 && !place.is_directory())
      return Answer::error(ENOTDIR);
    if (place.is_directory() && !request.makes_unnamed() &&
        (request.creates() || (request.flags & O_ACCMODE) != O_RDONLY ||
         (request.flags & O_TRUNC) != 0))
      return Answer::error(EISDIR);
    if (place.exists && (S_ISCHR(place.st.st_mode) || S_ISBLK(place.st.st_mode)))
      return open_device(c, call, request, place);
    if (place.on_proc) {
      const std::string refusal = proc_refusal(request, place);
      if (!refusal.empty())
        return deny(c, call, place, request.writes() ? "write" : "read",
                    {Decision::deny, refusal, {}, Judge::none});
      if (!place.exists) return Answer::error(ENOENT);
      Opened opened;
      opened.fd = w.resolver.reopen(place.object.get(),
                                    request.own_flags() & ~(O_CREAT | O_EXCL | O_NOFOLLOW));
      if (!opened.fd) return Answer::error(errno);
      return hand_over(c, call, request, place.real, std::move(opened));
    }

    std::string_view would;
    const Verdict verdict = judge_open(c, call, request, place, &would);
    // Written anew or from its start: what comes is judged before it has the name.
    if (verdict.decision == Decision::judge && verdict.judge == Judge::git_pointer &&
        (place.exists ? S_ISREG(place.st.st_mode) && (request.flags & O_TRUNC) != 0
                      : request.creates()))
      return open_pointer(c, w, call, place, request.flags, request.mode);
    if (!verdict.allowed()) return deny(c, call, place, would, verdict);

    if (place.exists && S_ISFIFO(place.st.st_mode) && (request.flags & O_NONBLOCK) == 0)
      return open_fifo_later(c, call, request, place.real, std::move(place.object));
    // keep: the pre-image of what is about to be truncated or overwritten belongs here.
    w.inflight->begin(w.slot, call.name(), place.real);
    Opened opened;
    if (place.exists) {
      if (request.makes_unnamed()) {
        take_umask(call);
        opened.fd.reset(openat(place.object.get(), ".", request.own_flags(), request.mode));
        if (!opened.fd) opened.error = errno;
        opened.created = true;
      } else {
        opened = open_existing(w, request, place);
      }
    } else {
      take_umask(call);
      opened.fd.reset(openat(place.parent.get(), place.leaf.c_str(),
                             request.own_flags() | O_NOFOLLOW | O_EXCL, request.mode));
      opened.created = static_cast<bool>(opened.fd);
      if (!opened.fd) {
        if (errno == EEXIST && !request.exclusive()) continue; // just made by somebody: again
        opened.error = errno;
      }
    }
    if (opened.error != 0) return failed(c, call, request, place.real, opened.error);
    if (opened.created && !request.makes_unnamed()) {
      struct stat st {};
      if (fstat(opened.fd.get(), &st) == 0) remember_made(c, *call.policy, place.real, st);
    }
    return hand_over(c, call, request, place.real, std::move(opened));
  }
  return Answer::error(EAGAIN);
}

// Nothing but the quick way's own conditions: a plain name, no link on it, allowed as it stands.
enum class Quick { answered, careful };

bool is_observed(const Policy& policy, const std::string& path) {
  return std::any_of(policy.observed_trees.begin(), policy.observed_trees.end(),
                     [&](const std::string& tree) { return os::is_below(path, tree); });
}

// A read in a tree that Landlock grants and below which nothing is closed: the kernel opens it. It
// decides on the object, so a raced path gains nothing; only the entry can be fooled, and says so.
// One wake-up less than handing a descriptor over. A link on the way may lead out of the tree,
// where Landlock would refuse what the policy allows: the careful way.
Quick observe(Context& c, Call& call, const Request& request, int at, const std::string& real,
              Answer* answer) {
  const Fd object(open_without_links(at, request.path.c_str(),
                                     O_PATH | O_CLOEXEC | (request.flags & O_DIRECTORY), 0,
                                     RESOLVE_NO_SYMLINKS));
  if (!object) {
    if (errno == ELOOP) return Quick::careful;
    *answer = Answer::error(errno);
    return Quick::answered;
  }
  struct stat st {};
  if (fstat(object.get(), &st) != 0) return Quick::careful;
  if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) return Quick::careful;
  if (os::is_procfs(object.get(), st)) return Quick::careful;
  if (has_other_names(st)) return Quick::careful;
  c.recorder.read(call.process(), call.name(), real, "observed");
  *answer = Answer::go_on();
  return Quick::answered;
}

Quick quick_open(Context& c, Worker& w, Call& call, const Request& request, Answer* answer) {
  if (request.path.empty() || request.makes_unnamed() || request.path.ends_with('/'))
    return Quick::careful;
  os::Base base;
  if (!request.path.starts_with('/')) {
    auto found = w.resolver.base(call.caller, request.dirfd);
    if (!found) {
      *answer = Answer::error(errno_of(found.error()));
      return Quick::answered;
    }
    base = std::move(*found);
    if (!base.path.starts_with('/') || base.path.ends_with(" (deleted)")) return Quick::careful;
  }
  const std::string real = os::lexical_join(base.path, request.path);
  if (os::is_below(real, "/proc") || os::is_below(real, "/dev")) return Quick::careful;
  const Policy& policy = *call.policy;
  FileAction action;
  action.path = real;
  if (request.reads() && !decide(policy, action).allowed()) return Quick::careful;
  if (request.writes() || request.creates()) {
    // As if it did not exist: what only the session may change needs the careful way.
    action.access = Access::write;
    if (!decide(policy, action).allowed()) return Quick::careful;
  }
  // An open of a FIFO meets the other end, and must not be tried out.
  if ((request.flags & O_NONBLOCK) == 0 && c.fifos.has(real)) return Quick::careful;
  const int at = base.fd ? base.fd.get() : AT_FDCWD;
  const char* path = request.path.c_str();
  if (!request.writes() && !request.creates() && is_observed(policy, real))
    return observe(c, call, request, at, real, answer);
  Opened opened;
  w.inflight->begin(w.slot, call.name(), real);
  // Without O_TRUNC and O_CREAT first: the object is looked at before it is changed, and the
  // caller's umask costs 10 us that only a real creation needs.
  const int flags = request.own_flags() & ~(O_CREAT | O_EXCL | O_TRUNC);
  if ((request.flags & O_TRUNC) != 0 && (request.flags & O_ACCMODE) == O_RDONLY)
    return Quick::careful;
  if (!request.exclusive())
    opened.fd.reset(open_without_links(at, path, flags, 0, RESOLVE_NO_SYMLINKS));
  if (!opened.fd && request.creates() && (request.exclusive() || errno == ENOENT)) {
    take_umask(call);
    opened.fd.reset(
        open_without_links(at, path, flags | O_CREAT | O_EXCL, request.mode, RESOLVE_NO_SYMLINKS));
    opened.created = static_cast<bool>(opened.fd);
    if (!opened.fd && errno == EEXIST && !request.exclusive()) return Quick::careful;
  }
  if (!opened.fd) {
    if (errno == ELOOP || errno == ENXIO || errno == EAGAIN || errno == ENODEV)
      return Quick::careful;
    *answer = failed(c, call, request, real, errno);
    return Quick::answered;
  }
  struct stat st {};
  if (fstat(opened.fd.get(), &st) != 0) return Quick::careful;
  if (!opened.created) {
    if (os::is_procfs(opened.fd.get(), st)) return Quick::careful; // one mounted elsewhere
    if (S_ISDIR(st.st_mode) && request.creates()) {
      *answer = Answer::error(EISDIR);
      return Quick::answered;
    }
    if (S_ISFIFO(st.st_mode) && (request.flags & O_NONBLOCK) == 0) {
      c.fifos.add(real);
      Fd object = w.resolver.reopen(opened.fd.get(), O_PATH);
      *answer = open_fifo_later(c, call, request, real, std::move(object), std::move(opened.fd));
      return Quick::answered;
    }
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) return Quick::careful;
    // A file with several names may be one that a rule means by another name.
    if (has_other_names(st) && (request.reads() || request.writes())) {
      action.object = id_of(st);
      action.exists = true;
      for (const Access access : {Access::read, Access::write}) {
        if (access == Access::read ? !request.reads() : !request.writes()) continue;
        action.access = access;
        Verdict verdict = decide(policy, action);
        if (verdict.allowed()) verdict = c.hidden.judge(policy, action.object, verdict);
        if (!verdict.allowed()) return Quick::careful;
      }
    }
    opened.size_before = st.st_size;
    if ((request.flags & O_TRUNC) != 0) {
      opened.truncated = true;
      if (ftruncate(opened.fd.get(), 0) != 0) {
        *answer = failed(c, call, request, real, errno);
        return Quick::answered;
      }
    }
  }
  *answer = hand_over(c, call, request, real, std::move(opened));
  return Quick::answered;
}

} // namespace

Answer open_call(Context& c, Worker& w, Call& call) {
  Request request;
  unsigned path_index = 0;
  if (call.row->name == "openat") {
    request.dirfd = call.fd(0);
    path_index = 1;
  }
  auto path = path_argument(call, path_index);
  if (!path) return Answer::error(errno_of(path.error()));
  request.path = std::move(*path);
  if (call.row->family == Family::creat) {
    request.flags = O_CREAT | O_WRONLY | O_TRUNC;
    request.mode = static_cast<mode_t>(call.arg(1));
  } else {
    request.flags = static_cast<int>(call.word(path_index + 1));
    request.mode = static_cast<mode_t>(call.arg(path_index + 2));
  }
  // Unknown bits are ignored by open(2) but refused by openat2, which we use.
  constexpr int known = O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK |
                        O_DSYNC | O_SYNC | O_ASYNC | O_DIRECT | O_LARGEFILE | O_DIRECTORY |
                        O_NOFOLLOW | O_NOATIME | O_CLOEXEC | // NOLINT(misc-redundant-expression)
                        O_TMPFILE;                           // some hold others
  request.flags &= known;
  if (request.path.empty()) return Answer::error(ENOENT);
  if (request.creates() && (request.flags & O_DIRECTORY) != 0) return Answer::error(EINVAL);
  if (request.makes_unnamed() && (request.flags & O_ACCMODE) == O_RDONLY)
    return Answer::error(EINVAL);
  Answer answer;
  if (quick_open(c, w, call, request, &answer) == Quick::answered) return answer;
  return careful_open(c, w, call, request);
}

} // namespace nd7
