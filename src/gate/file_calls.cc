// Names: mkdir, rmdir and unlink, rename, link, symlink, mknod.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include "gate/gate.h"
#include "gate/judged.h"

namespace nd7 {
namespace {

bool is_legacy(const Call& call, std::string_view name) {
  return call.name() == name;
}

struct Named {
  int dirfd = AT_FDCWD;
  std::string path;
};

// (path) or (dirfd, path) at `index`, by whether the call is of the *at kind.
Result<Named> named(const Call& call, unsigned index, bool with_dirfd) {
  Named out;
  if (with_dirfd) out.dirfd = call.fd(index++);
  auto path = path_argument(call, index);
  if (!path) return std::unexpected(path.error());
  out.path = std::move(*path);
  return out;
}

Result<os::Place> resolve(Context& c, Worker& w, Call& call, unsigned index, bool with_dirfd,
                          os::Follow follow) {
  auto name = named(call, index, with_dirfd);
  if (!name) return std::unexpected(name.error());
  return place_of(c, w, call, name->dirfd, name->path, follow);
}

// A recorded change of one name. Errors that changed nothing and on which programs live are not
// worth an entry.
Answer finish(Context& c, Call& call, std::string_view kind, const os::Place& place, int result,
              const char* target = nullptr) {
  const int error = result < 0 ? errno : 0;
  if (error != ENOENT && error != EEXIST && error != ENOTEMPTY && error != ENOTDIR &&
      error != EISDIR) {
    JsonWriter body = c.recorder.effect(call.process(), call.name(), error, "performed");
    if (kind == "symlink")
      body.path("from", target == nullptr ? "" : target).path("to", place.real);
    else
      body.path("path", place.real);
    if (kind == "mkdir" || kind == "remove") body.null("preimage");
    c.recorder.append(call.process(), kind, body);
  }
  return error != 0 ? Answer::error(error) : Answer::value(0);
}

void remember_created(Context& c, const Policy& policy, const os::Place& place) {
  struct stat st {};
  if (fstatat(place.parent.get(), place.leaf.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0)
    remember_made(c, policy, place.real, st);
}

// A link under a name that a guarded place lies below could become a way to it. One to a sibling is
// none where the rule covers every sibling (git tries links in its own directory).
const Rule* names_ancestor(const Policy& policy, const std::string& path, std::string_view target) {
  const bool sibling = !target.contains('/') && target != "." && target != "..";
  for (const Remainder& remainder : remainders_below(policy, path))
    if (remainder.rule->effect != Effect::deny_read && !(remainder.by_wildcard && sibling))
      return remainder.rule;
  return nullptr;
}

Verdict link_to_guarded(const Policy& policy, const std::string& path, const Rule& rule) {
  return {Decision::deny,
          fmt::format("guarded: a link here would stand before {} ({})", rule.path, rule.reason),
          "nd7 allow " + shell_word(tilde(policy, path)), Judge::none};
}

Verdict guarded_below(const Policy& policy, const Covered& covered) {
  return {Decision::deny,
          "guarded: this would put " + tilde(policy, covered.path) +
              " in place, which runs later outside or is closed",
          "nd7 allow " + shell_word(tilde(policy, covered.path)), Judge::none};
}

} // namespace

Answer mkdir_call(Context& c, Worker& w, Call& call) {
  const bool at = !is_legacy(call, "mkdir");
  auto place = resolve(c, w, call, 0, at, os::Follow::all_but_last);
  if (!place) return Answer::error(errno_of(place.error()));
  if (place->exists || place->last != os::LastPart::name) return Answer::error(EEXIST);
  if (place->on_proc) return Answer::error(ENOENT);
  Verdict verdict = judge(c, call, Access::write, *place);
  if (verdict.decision == Decision::judge && verdict.judge == Judge::git_pointer)
    verdict.decision = Decision::allow; // a directory is no pointer
  if (!verdict.allowed()) return deny(c, call, *place, "mkdir", verdict);
  take_umask(call);
  w.inflight->begin(w.slot, call.name(), place->real);
  const int result =
      mkdirat(place->parent.get(), place->leaf.c_str(), static_cast<mode_t>(call.arg(at ? 2 : 1)));
  if (result == 0) remember_created(c, *call.policy, *place);
  return finish(c, call, "mkdir", *place, result);
}

Answer remove_call(Context& c, Worker& w, Call& call) {
  const bool at = call.name() == "unlinkat";
  const unsigned flags = at ? call.word(2) : 0;
  const bool directory = is_legacy(call, "rmdir") || (flags & AT_REMOVEDIR) != 0;
  if ((flags & ~static_cast<unsigned>(AT_REMOVEDIR)) != 0) return Answer::error(EINVAL);
  auto place = resolve(c, w, call, 0, at, os::Follow::all_but_last);
  if (!place) return Answer::error(errno_of(place.error()));
  switch (place->last) {
  case os::LastPart::dot:
    return Answer::error(directory ? EINVAL : EISDIR);
  case os::LastPart::dot_dot:
    return Answer::error(directory ? ENOTEMPTY : EISDIR);
  case os::LastPart::root:
    return Answer::error(directory ? EBUSY : EISDIR);
  case os::LastPart::magic:
    return Answer::error(EPERM);
  case os::LastPart::name:
    break;
  }
  if (!place->exists) return Answer::error(ENOENT);
  if (directory && !place->is_directory()) return Answer::error(ENOTDIR);
  if (!directory && place->is_directory()) return Answer::error(EISDIR);
  if (place->on_proc) return Answer::error(EPERM);
  Verdict verdict = judge(c, call, Access::write, *place);
  // A repository may be taken away as a whole; what decides hooks and sandboxes may not.
  if (verdict.decision == Decision::judge &&
      (verdict.judge == Judge::git_config || verdict.judge == Judge::git_pointer))
    verdict.decision = Decision::allow;
  if (!verdict.allowed()) return deny(c, call, *place, "remove", verdict);
  // keep: the pre-image of what goes away belongs here.
  w.inflight->begin(w.slot, call.name(), place->real);
  const std::shared_lock hold(c.names);
  const int result =
      unlinkat(place->parent.get(), place->leaf.c_str(), directory ? AT_REMOVEDIR : 0);
  if (result == 0 && place->st.st_nlink <= 1) c.made.remove({place->st.st_dev, place->st.st_ino});
  return finish(c, call, "remove", *place, result);
}

Answer rename_call(Context& c, Worker& w, Call& call) {
  const bool at = !is_legacy(call, "rename");
  const unsigned flags = call.name() == "renameat2" ? call.word(4) : 0;
  if ((flags & ~static_cast<unsigned>(RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT)) != 0)
    return Answer::error(EINVAL);
  if ((flags & RENAME_WHITEOUT) != 0) return Answer::error(EPERM); // needs CAP_MKNOD
  const bool exchange = (flags & RENAME_EXCHANGE) != 0;
  if (exchange && (flags & RENAME_NOREPLACE) != 0) return Answer::error(EINVAL);
  auto from = resolve(c, w, call, 0, at, os::Follow::all_but_last);
  if (!from) return Answer::error(errno_of(from.error()));
  auto to = resolve(c, w, call, at ? 2 : 1, at, os::Follow::all_but_last);
  if (!to) return Answer::error(errno_of(to.error()));
  if (from->last != os::LastPart::name || to->last != os::LastPart::name)
    return Answer::error(EBUSY);
  if (!from->exists || (exchange && !to->exists)) return Answer::error(ENOENT);
  if (to->exists && (flags & RENAME_NOREPLACE) != 0) return Answer::error(EEXIST);
  if (!from->is_directory() && (to->trailing_slash || from->trailing_slash) && !to->exists)
    return Answer::error(ENOTDIR);
  if (!exchange && to->exists && from->is_directory() != to->is_directory())
    return Answer::error(to->is_directory() ? EISDIR : ENOTDIR);
  if (from->on_proc || to->on_proc) return Answer::error(EPERM);

  const Policy& policy = *call.policy;
  const std::unique_lock hold(c.names);
  // Both ends are judged as changed; what is closed to reading must not get another name.
  Verdict verdict = judge(c, call, Access::write, *from);
  if (verdict.decision == Decision::judge &&
      (verdict.judge == Judge::git_config || verdict.judge == Judge::git_pointer) && !exchange)
    verdict.decision = Decision::allow; // moving a git file away is removing it
  if (!verdict.allowed()) return deny(c, call, *from, "rename", verdict);
  verdict = judge(c, call, Access::read, *from);
  if (!verdict.allowed()) return deny(c, call, *from, "rename", verdict);
  // A rename over a name writes what stands there now and puts another object under it: the new
  // object is what the rules of the target's name will cover.
  verdict = judge(c, call, Access::write, *to);
  if (verdict.decision == Decision::judge) {
    if (exchange) return deny(c, call, *to, "rename", verdict);
    if (verdict.judge == Judge::git_pointer && from->is_directory()) {
      verdict.decision = Decision::allow;
    } else {
      return rename_onto_judged(c, w, call, *from, *to, verdict);
    }
  }
  if (!verdict.allowed()) return deny(c, call, *to, "rename", verdict);
  const auto covered_by = [&](const os::Place& object, const std::string& name, bool arriving) {
    return object.is_directory() ? covered_below(policy, name, object.object.get(), arriving)
                                 : Covered{};
  };
  // Arriving: the moved thing under its new name. Leaving: what lies below the old name.
  Covered covered = covered_by(*from, to->real, true);
  if (covered.rule == nullptr) covered = covered_by(*from, from->real, false);
  if (covered.rule == nullptr && exchange) {
    covered = covered_by(*to, from->real, true);
    if (covered.rule == nullptr) covered = covered_by(*to, to->real, false);
  }
  if (covered.rule != nullptr) return deny(c, call, *to, "rename", guarded_below(policy, covered));
  if (S_ISLNK(from->st.st_mode) || (exchange && S_ISLNK(to->st.st_mode))) {
    const std::string& name = S_ISLNK(from->st.st_mode) ? to->real : from->real;
    if (const Rule* rule = names_ancestor(policy, name, "/"))
      return deny(c, call, *to, "rename", link_to_guarded(policy, name, *rule));
  }

  // keep: the pre-image of what is replaced belongs here.
  w.inflight->begin(w.slot, call.name(), to->real);
  const int result = static_cast<int>(syscall(SYS_renameat2, from->parent.get(), from->leaf.c_str(),
                                              to->parent.get(), to->leaf.c_str(), flags));
  const int error = result < 0 ? errno : 0;
  if (result == 0) {
    if (to->exists && !exchange) c.made.remove({to->st.st_dev, to->st.st_ino});
    remember_made(c, policy, to->real, from->st);
    if (exchange) remember_made(c, policy, from->real, to->st);
  }
  if (error == ENOENT || error == ENOTEMPTY || error == EEXIST) return Answer::error(error);
  const Join own = call.process().joined();
  JsonWriter body = c.recorder.effect(call.process(), call.name(), error, "performed");
  body.path("from", from->real).path("to", to->real).boolean("replaced", to->exists);
  if (own.call.empty())
    if (const Join write = c.joins.of_own_write(to->real); !write.call.empty())
      body.text("own_write_of", write.call);
  c.recorder.append(call.process(), "rename", body);
  return error != 0 ? Answer::error(error) : Answer::value(0);
}

Answer link_call(Context& c, Worker& w, Call& call) {
  const bool at = !is_legacy(call, "link");
  const unsigned flags = at ? call.word(4) : 0;
  if ((flags & ~static_cast<unsigned>(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH)) != 0)
    return Answer::error(EINVAL);
  auto name = named(call, 0, at);
  if (!name) return Answer::error(errno_of(name.error()));
  Result<os::Place> from = os::Place{};
  if (name->path.empty() && (flags & AT_EMPTY_PATH) != 0) {
    // The descriptor's own object, as when an unnamed file gets its name.
    from = place_of(c, w, call, AT_FDCWD, "/proc/self/fd/" + std::to_string(name->dirfd),
                    os::Follow::last_too);
  } else {
    from = place_of(c, w, call, name->dirfd, name->path,
                    (flags & AT_SYMLINK_FOLLOW) != 0 ? os::Follow::last_too
                                                     : os::Follow::all_but_last);
  }
  if (!from) return Answer::error(errno_of(from.error()));
  auto to = resolve(c, w, call, at ? 2 : 1, at, os::Follow::all_but_last);
  if (!to) return Answer::error(errno_of(to.error()));
  if (!from->exists) return Answer::error(ENOENT);
  if (to->exists || to->last != os::LastPart::name) return Answer::error(EEXIST);
  if (from->is_directory()) return Answer::error(EPERM);
  if (to->on_proc || from->on_proc) return Answer::error(EXDEV);
  const std::unique_lock hold(c.names);
  // Another name gives every right that the new place gives: the old one must give them too.
  // An unnamed file has no old name; it was opened through the gate in this session.
  const bool unnamed = from->st.st_nlink == 0;
  if (!unnamed) {
    Verdict verdict = judge(c, call, Access::write, *from);
    if (!verdict.allowed()) return deny(c, call, *from, "link", verdict);
    verdict = judge(c, call, Access::read, *from);
    if (!verdict.allowed()) return deny(c, call, *from, "link", verdict);
  }
  Verdict verdict = judge(c, call, Access::write, *to);
  if (!verdict.allowed()) return deny(c, call, *to, "link", verdict);
  if (S_ISLNK(from->st.st_mode))
    if (const Rule* rule = names_ancestor(*call.policy, to->real, "/"))
      return deny(c, call, *to, "link", link_to_guarded(*call.policy, to->real, *rule));
  w.inflight->begin(w.slot, call.name(), to->real);
  const int result = linkat(AT_FDCWD, FdPath(from->object.get()).c_str(), to->parent.get(),
                            to->leaf.c_str(), AT_SYMLINK_FOLLOW);
  const int error = result < 0 ? errno : 0;
  if (result == 0) remember_created(c, *call.policy, *to);
  JsonWriter body = c.recorder.effect(call.process(), call.name(), error, "performed");
  body.path("from", from->real).path("to", to->real).boolean("replaced", false);
  c.recorder.append(call.process(), "link", body);
  return error != 0 ? Answer::error(error) : Answer::value(0);
}

Answer symlink_call(Context& c, Worker& w, Call& call) {
  const bool at = !is_legacy(call, "symlink");
  auto target = path_argument(call, 0);
  if (!target) return Answer::error(errno_of(target.error()));
  if (target->empty()) return Answer::error(ENOENT);
  auto place = resolve(c, w, call, 1, at, os::Follow::all_but_last);
  if (!place) return Answer::error(errno_of(place.error()));
  if (place->exists || place->last != os::LastPart::name) return Answer::error(EEXIST);
  if (place->trailing_slash || place->on_proc) return Answer::error(ENOENT);
  // What the text leads to is judged when somebody follows it; the name is judged now.
  const Verdict verdict = judge(c, call, Access::write, *place);
  if (!verdict.allowed()) return deny(c, call, *place, "symlink", verdict);
  if (const Rule* rule = names_ancestor(*call.policy, place->real, *target))
    return deny(c, call, *place, "symlink", link_to_guarded(*call.policy, place->real, *rule));
  w.inflight->begin(w.slot, call.name(), place->real);
  const int result = symlinkat(target->c_str(), place->parent.get(), place->leaf.c_str());
  if (result == 0) remember_created(c, *call.policy, *place);
  return finish(c, call, "symlink", *place, result, target->c_str());
}

Answer mknod_call(Context& c, Worker& w, Call& call) {
  const bool at = !is_legacy(call, "mknod");
  const auto mode = static_cast<mode_t>(call.arg(at ? 2 : 1));
  const auto device = static_cast<dev_t>(call.arg(at ? 3 : 2));
  auto place = resolve(c, w, call, 0, at, os::Follow::all_but_last);
  if (!place) return Answer::error(errno_of(place.error()));
  if (place->exists || place->last != os::LastPart::name) return Answer::error(EEXIST);
  if (place->trailing_slash || place->on_proc) return Answer::error(ENOENT);
  if (S_ISCHR(mode) || S_ISBLK(mode)) return Answer::error(EPERM); // as without CAP_MKNOD
  if (S_ISDIR(mode)) return Answer::error(EPERM);
  const Verdict verdict = judge(c, call, Access::write, *place);
  if (!verdict.allowed()) return deny(c, call, *place, "write", verdict);
  take_umask(call);
  w.inflight->begin(w.slot, call.name(), place->real);
  const int result = mknodat(place->parent.get(), place->leaf.c_str(), mode, device);
  if (result == 0) remember_created(c, *call.policy, *place);
  if (result == 0 && S_ISFIFO(mode)) c.fifos.add(place->real);
  const int error = result < 0 ? errno : 0;
  JsonWriter body = c.recorder.effect(call.process(), call.name(), error, "performed");
  body.path("path", place->real).text("mode", "created").null("size_before").null("preimage");
  c.recorder.append(call.process(), "write", body);
  return error != 0 ? Answer::error(error) : Answer::value(0);
}

} // namespace nd7
