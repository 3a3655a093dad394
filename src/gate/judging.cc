// What the handlers of file calls share: asking decide(), refusing, guarded content below a name.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate/gate.h"
#include "os/remote.h"

namespace nd7 {
namespace {

constexpr std::size_t listed_max = 4096; // entries looked at for a '*' in a guarded pattern

// The longest shared place (only what the session made may be changed) that holds this path.
const Rule* shared_place(const Policy& policy, std::string_view path) {
  const Rule* best = nullptr;
  for (const Rule& rule : policy.rules)
    if (rule.effect == Effect::own_write && os::is_below(path, rule.path) &&
        (best == nullptr || rule.path.size() > best->path.size()))
      best = &rule;
  return best;
}

ObjectId id_of(const struct stat& st) {
  return {st.st_dev, st.st_ino};
}

// In a shared place of other programs (subtree: /tmp) the top entry must be ours or new; in a place
// of the agent's (below: sessions/) new entries are fine, existing ones must be ours.
bool made_here(Context& c, const Rule& rule, const std::string& path, bool exists) {
  if (rule.shape != Shape::subtree && !exists) return true;
  std::size_t end = rule.path.size();
  while (end < path.size()) {
    end = std::min(path.find('/', end + 1), path.size());
    struct stat st {};
    if (lstat(path.substr(0, end).c_str(), &st) != 0)
      return errno == ENOENT && rule.shape == Shape::subtree && end == path.size();
    if (c.made.has(id_of(st))) return true;
    if (rule.shape == Shape::subtree) return false;
  }
  return false;
}

// A component of a remainder against a directory entry; '*' only as all or a suffix pattern.
bool entry_matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos)
    return pattern.size() == name.size() &&
           strncasecmp(pattern.data(), name.data(), name.size()) == 0;
  const std::string_view head = pattern.substr(0, star), tail = pattern.substr(star + 1);
  return name.size() >= head.size() + tail.size() && name.starts_with(head) && name.ends_with(tail);
}

// Looks up the remaining components below an open directory; the first match that `covers` wants.
std::string look_up(int directory, std::string_view rest, std::string_view so_far,
                    const std::function<bool(const std::string&)>& covers) {
  const std::size_t slash = rest.find('/');
  const std::string_view part = rest.substr(0, slash);
  const std::string_view more =
      slash == std::string_view::npos ? std::string_view{} : rest.substr(slash + 1);
  const Fd copy(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!copy) return errno == ENOTDIR ? std::string{} : std::string(so_far);
  DIR* dir = fdopendir(dup(copy.get()));
  if (dir == nullptr) return std::string(so_far);
  std::string found;
  std::size_t seen = 0;
  while (const dirent* entry = readdir(dir)) {
    const std::string name = entry->d_name;
    if (name == "." || name == ".." || !entry_matches(part, name)) continue;
    if (++seen > listed_max) { // too many to judge: refuse rather than guess
      found = std::string(so_far) + "/...";
      break;
    }
    const std::string path = std::string(so_far) + "/" + name;
    if (more.empty()) {
      if (covers(path)) found = path;
    } else {
      const Fd next(openat(copy.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
      struct stat st {};
      if (next && fstat(next.get(), &st) == 0 && S_ISLNK(st.st_mode)) {
        // A link in the middle can be turned to anything later: as good as the guarded thing.
        found = path;
      } else if (next) {
        found = look_up(next.get(), more, path, covers);
      }
    }
    if (!found.empty()) break;
  }
  closedir(dir);
  return found;
}

} // namespace

FileAction action_of(Context& c, const Policy& policy, Access access, const os::Place& place) {
  FileAction action;
  action.access = access;
  action.path = place.real;
  action.exists = place.exists;
  action.is_directory = place.is_directory();
  if (place.exists) action.object = id_of(place.st);
  if (access == Access::write)
    if (const Rule* rule = shared_place(policy, place.real))
      action.made_by_session = made_here(c, *rule, place.real, place.exists);
  return action;
}

Verdict judge(Context& c, Call& call, Access access, const os::Place& place) {
  if (place.is_anonymous()) {
    // A pipe, socket or memfd of a process of this session: its own.
    return {Decision::allow, "an object without a name", {}, Judge::none};
  }
  // Shared memory of other programs is no file to look at: only what this session made.
  if (access == Access::read && place.exists && !place.is_directory() &&
      os::is_below(place.real, "/dev/shm") && !c.made.has({place.st.st_dev, place.st.st_ino}))
    return {Decision::deny, "only what this session made: /dev/shm",
            "nd7 allow --read " + shell_word(place.real), Judge::none};
  const Verdict verdict = decide(*call.policy, action_of(c, *call.policy, access, place));
  if (!verdict.allowed() || !has_other_names(place.st)) return verdict;
  // A file with several names may be one that a rule closes under another name.
  return c.hidden.judge(*call.policy, {place.st.st_dev, place.st.st_ino}, verdict);
}

bool has_other_names(const struct stat& st) {
  return S_ISREG(st.st_mode) && st.st_nlink > 1;
}

bool is_quiet(const Policy& policy, const std::string& path, std::string_view would) {
  // Shells and editors try these at every start and end (product.md): counted, folded, not told.
  static constexpr std::string_view names[] = {
      "/.viminfo",        "/.ssh/known_hosts", "/.lesshst",           "/.gitconfig",
      "/.gitconfig.lock", "/.python_history",  "/.node_repl_history", "/.wget-hsts",
  };
  const std::string_view rest = std::string_view(path).substr(
      os::is_below(path, policy.home) ? policy.home.size() : path.size());
  if (would == "read" && (rest.ends_with("_history") || rest.ends_with("history"))) return true;
  if (rest.ends_with("_history") || rest.starts_with("/.viminf")) return true;
  return std::any_of(std::begin(names), std::end(names),
                     [&](std::string_view name) { return rest == name; });
}

Telling telling_of(Context& c, const Process& process, const std::string& object,
                   std::string_view would) {
  if (is_quiet(*c.policy.now(), object, would)) return Telling::none;
  // Outside of every tool call, and no write that one named: the agent's own doing.
  if (c.facts.has_hooks && process.joined().call.empty() && !c.joins.any_open() &&
      c.joins.of_own_write(object).call.empty())
    return Telling::person;
  return Telling::all;
}

// What the kernel itself would say to this caller, 0 if it would do it. Nothing is changed by
// asking.
int kernels_word(const os::Place& place, std::string_view would) {
  const auto may = [](const Fd& fd, int mode) {
    return fd && faccessat(AT_FDCWD, FdPath(fd.get()).c_str(), mode, AT_EACCESS) != 0 ? errno : 0;
  };
  if (would == "read" || would == "exec") return place.exists ? may(place.object, R_OK) : 0;
  if (would == "meta") {
    // The owner's business; a file system that is read-only says so to all.
    if (const int error = may(place.object, W_OK); error == EROFS) return error;
    return geteuid() != 0 && place.st.st_uid != geteuid() ? EPERM : 0;
  }
  if (would == "write" && place.exists) return may(place.object, W_OK);
  return may(place.parent, W_OK);
}

Answer deny(Context& c, Call& call, const os::Place& place, std::string_view would,
            const Verdict& verdict, const std::function<void(JsonWriter&)>& more) {
  // The kernel's own word comes first: where the caller may not do it anyway, nothing is refused.
  const int own_error = kernels_word(place, would);
  if (own_error == EACCES || own_error == EROFS || own_error == EPERM) {
    JsonWriter body = c.recorder.effect(call.process(), call.name(), own_error, "performed");
    body.path("path", place.real);
    if (more) more(body);
    c.recorder.append(call.process(), would, body);
    return Answer::error(own_error);
  }
  c.recorder.refuse(
      call.process(), call.name(), would, place.real, verdict,
      [&](JsonWriter& body) {
        body.path("path", place.real);
        if (more) more(body);
      },
      telling_of(c, call.process(), place.real, would));
  return Answer::error(EACCES);
}

void take_umask(const Call& call) {
  auto status = read_proc_file(call.caller.tid, "status");
  // A caller that cannot be asked gets the safest mask.
  const std::string text = status ? proc_status_field(*status, "Umask") : "0077";
  umask(static_cast<mode_t>(std::strtoul(text.c_str(), nullptr, 8)));
}

void remember_made(Context& c, const Policy& policy, const std::string& path,
                   const struct stat& st) {
  if (shared_place(policy, path) != nullptr) c.made.add(id_of(st));
}

Covered covered_below(const Policy& policy, const std::string& path, int object_fd,
                      bool including_suffixes) {
  for (const Remainder& remainder : remainders_below(policy, path)) {
    if (!including_suffixes && remainder.rule->shape == Shape::suffix) continue;
    const auto covers = [&](const std::string& found) {
      // Exceptions of the same kind hold here too (hooks/*.sample).
      FileAction action;
      action.access = remainder.rule->effect == Effect::deny_read ? Access::read : Access::write;
      action.path = found;
      const Verdict verdict = decide(policy, action);
      // Its content would come with the directory, unjudged. A directory named .git is no pointer.
      if (verdict.decision == Decision::judge) return verdict.judge != Judge::git_pointer;
      return !verdict.allowed();
    };
    const std::string found = look_up(object_fd, remainder.relative, path, covers);
    if (!found.empty()) return {found, remainder.rule};
  }
  return {};
}

Result<std::string> path_argument(const Call& call, unsigned index) {
  return os::read_remote_string(call.caller.tid, call.arg(index), PATH_MAX - 1);
}

Result<os::Place> place_of(Context&, Worker& w, Call& call, int dirfd, const std::string& path,
                           os::Follow follow) {
  os::Base base;
  if (!path.starts_with('/')) {
    auto found = w.resolver.base(call.caller, dirfd);
    if (!found) return std::unexpected(found.error());
    base = std::move(*found);
  }
  return w.resolver.resolve(call.caller, base, path, follow);
}

} // namespace nd7
