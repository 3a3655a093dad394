#include "gate/judged.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include "core/judge.h"
#include "os/files.h"

namespace nd7 {
namespace {

constexpr std::size_t judged_bytes_max = 4 << 20; // configuration files are small
constexpr int name_attempts_max = 16;

Result<std::string> read_object(int object) {
  const Fd fd(::open(FdPath(object).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return os_error("open");
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) return os_error("fstat");
  if (!S_ISREG(st.st_mode)) return fail("not a regular file");
  if (st.st_size > static_cast<off_t>(judged_bytes_max)) return fail("too large to be judged");
  return os::read_at(fd.get(), 0, judged_bytes_max);
}

// Puts `bytes` under parent/leaf in a file that nobody else ever held: made beside it, renamed.
int place_bytes(int parent, const std::string& leaf, std::string_view bytes, mode_t mode,
                const struct stat* owner) {
  for (int attempt = 0; attempt < name_attempts_max; ++attempt) {
    const std::string temporary = fmt::format(".nd7-{}-{}", getpid(), random());
    const Fd fd(openat(parent, temporary.c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd) {
      if (errno == EEXIST) continue;
      return errno;
    }
    int error = 0;
    if (auto ok = os::write_all(fd.get(), bytes); !ok) error = errno_of(ok.error());
    if (error == 0 && owner != nullptr && geteuid() == 0 &&
        fchown(fd.get(), owner->st_uid, owner->st_gid) != 0)
      error = errno;
    if (error == 0 && fchmod(fd.get(), mode & 07777U) != 0) error = errno;
    if (error == 0 && renameat(parent, temporary.c_str(), parent, leaf.c_str()) != 0) error = errno;
    if (error != 0) unlinkat(parent, temporary.c_str(), 0);
    return error;
  }
  return EEXIST;
}

Answer refuse_judged(Context& c, Call& call, const os::Place& place, const char* would,
                     std::string rule, std::string open_with) {
  return deny(c, call, place, would,
              {Decision::deny, std::move(rule), std::move(open_with), Judge::none});
}

} // namespace

Answer rename_onto_judged(Context& c, Worker& w, Call& call, const os::Place& from,
                          const os::Place& to, const Verdict& verdict) {
  const std::string open_with = verdict.judge == Judge::git_config ? verdict.open_with : "";
  auto fresh = read_object(from.object.get());
  if (!fresh)
    return refuse_judged(c, call, to, "rename", verdict.rule + ": " + fresh.error().text,
                         open_with);
  std::string old;
  if (to.exists) {
    auto now = read_object(to.object.get());
    if (!now)
      return refuse_judged(c, call, to, "rename", verdict.rule + ": " + now.error().text,
                           open_with);
    old = std::move(*now);
  }
  if (verdict.judge == Judge::git_pointer) {
    return refuse_judged(c, call, to, "rename", verdict.rule, open_with);
  }
  const Judgement judgement =
      judge_change(verdict.judge, old, *fresh, {to.real, call.policy->project});
  if (!judgement.ok) return refuse_judged(c, call, to, "rename", judgement.rule, open_with);
  // keep: the pre-image of what is replaced belongs here.
  w.inflight->begin(w.slot, call.name(), to.real);
  int error = place_bytes(to.parent.get(), to.leaf, *fresh, from.st.st_mode, &from.st);
  if (error == 0 && unlinkat(from.parent.get(), from.leaf.c_str(), 0) != 0) error = errno;
  JsonWriter body = c.recorder.effect(call.process(), call.name(), error, "performed");
  body.path("from", from.real).path("to", to.real).boolean("replaced", to.exists);
  c.recorder.append(call.process(), "rename", body);
  return error != 0 ? Answer::error(error) : Answer::value(0);
}

Answer open_pointer(Context& c, Worker& w, Call& call, const os::Place& place, int flags,
                    mode_t mode) {
  (void)w;
  take_umask(call);
  Fd unnamed(openat(place.parent.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode));
  if (!unnamed)
    return refuse_judged(c, call, place, "write",
                         "a .git file can be judged only on a file system with O_TMPFILE",
                         "nd7 allow " + shell_word(tilde(*call.policy, place.real)));
  Fd given(::open(FdPath(unnamed.get()).c_str(), (flags & O_ACCMODE) | O_CLOEXEC));
  if (!given) return Answer::error(errno);
  {
    const std::lock_guard hold(c.tables);
    PendingPointer pending;
    pending.file = std::make_shared<Fd>(std::move(unnamed));
    pending.parent =
        std::make_shared<Fd>(openat(place.parent.get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    pending.leaf = place.leaf;
    c.pending_pointers[place.real] = std::move(pending);
    c.pointers_wait = true;
  }
  return Answer::descriptor(std::move(given), (flags & O_CLOEXEC) != 0);
}

void settle_pointers(Context& c, const Policy& policy, Process& process) {
  if (!c.pointers_wait) return;
  const std::lock_guard hold(c.tables);
  for (auto at = c.pending_pointers.begin(); at != c.pending_pointers.end();) {
    PendingPointer& pending = at->second;
    const std::string& name = at->first;
    auto text = os::read_at(pending.file->get(), 0, 8192);
    std::string target;
    if (!text || !text->ends_with('\n') || !git_pointer_target(*text, &target)) {
      ++at; // not written to its end yet
      continue;
    }
    const std::string directory = name.substr(0, name.rfind('/'));
    const std::string full = os::lexical_join(directory, target);
    // Git writes the pointer before it makes what it points to.
    const std::string leads = os::resolved_as_far(full);
    // Into a git directory of the project: below some .git, whose files are judged themselves.
    const bool inside =
        os::is_below(leads, policy.project) && leads.find("/.git/") != std::string::npos;
    struct stat made {}; // with the caller's umask in its mode
    const mode_t mode = fstat(pending.file->get(), &made) == 0 ? made.st_mode & 0777U : 0600U;
    const int error =
        inside ? place_bytes(pending.parent->get(), pending.leaf, *text, mode, nullptr) : EACCES;
    if (!inside) {
      c.recorder.refuse(process, "openat", "write", name,
                        {Decision::deny,
                         fmt::format("a .git file may lead only into a git directory of the "
                                     "project, not to {}",
                                     full),
                         "nd7 allow " + shell_word(tilde(policy, name)), Judge::none},
                        [&](JsonWriter& body) { body.path("path", name); });
    } else {
      JsonWriter body = c.recorder.effect(process, "openat", error, "performed");
      body.path("path", name).text("mode", "created").null("size_before").null("preimage");
      c.recorder.append(process, "write", body);
    }
    at = c.pending_pointers.erase(at);
  }
  c.pointers_wait = !c.pending_pointers.empty();
}

} // namespace nd7
