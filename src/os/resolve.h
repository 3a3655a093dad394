// From what a caller named to the object it means, in the caller's view: resolve once, hold it.
//
// A call names a file by (dirfd, path). resolve() turns that into a Place: an O_PATH descriptor of
// the object (if it exists), one of its parent, the leaf name and the true absolute name. Decisions
// and operations then use the Place; the caller's memory and the path are not looked at again.
//
// Two ways. The quick one: no symbolic link on the way, so that the lexical name is the true one
// (openat2 with RESOLVE_NO_SYMLINKS says ELOOP otherwise). The slow one walks component by
// component, follows at most 40 links itself, and knows procfs: "self" means the caller at every
// link, steps below a process of someone else are marked, magic links (fd/N, cwd, root, exe) are
// opened, and named by what they led to.
// The caller's root is ours: chroot and mounts are refused inside.
// Sources: path_resolution(7), openat2(2), proc(5); measurements in docs/decisions/resolver.md.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <sys/stat.h>
#include <sys/types.h>

#include "base/fd.h"
#include "base/result.h"

namespace nd7::os {

// Who asks. Descriptors are borrowed.
struct Caller {
  pid_t tid = 0;
  pid_t tgid = 0;
  int proc = -1;  // O_PATH on /proc/TID
  int pidfd = -1; // for pidfd_getfd
  const std::function<bool(pid_t)>* in_session = nullptr;
};

// Where relative paths start: the caller's working directory or one of its descriptors.
struct Base {
  Fd fd;            // O_PATH or the descriptor itself; none for "/"
  std::string path; // its true name now
};

enum class Follow { last_too, all_but_last };

enum class LastPart { name, dot, dot_dot, root, magic };

struct Place {
  Fd parent; // the directory that holds `leaf`; none for root, dot, magic
  std::string leaf;
  LastPart last = LastPart::name;
  Fd object;         // O_PATH on the object; none when it does not exist
  struct stat st {}; // of the object
  bool exists = false;
  std::string real; // absolute and resolved; "pipe:[1]" and the like for objects without a name
  bool trailing_slash = false;
  bool on_proc = false;      // the object or the missing leaf lies on a procfs
  pid_t proc_owner = 0;      // the process below whose directory it lies, 0 for the global part
  bool foreign_proc = false; // that process is not of the session
  bool is_anonymous() const { return real.empty() || real[0] != '/'; }
  bool is_directory() const { return exists && S_ISDIR(st.st_mode); }
};

// One per thread that resolves: owns a working directory of its own where CLONE_FS can be unshared.
// Docker's default profile refuses that; there names come by readlink, and whoever sets the working
// directory or the umask of its thread must be the only thread that does (gate/supervisor.cc).
class Resolver {
public:
  // Must run on the thread that will use it.
  static Result<Resolver> make();

  // os_errno: EBADF, ENOTDIR, EACCES, ENOENT (the working directory is gone).
  Result<Base> base(const Caller& caller, int dirfd) const;
  // The name of an open descriptor of ours: fchdir+getcwd for directories, else readlink.
  std::string name_of(int fd) const;
  std::string readlink_of(int fd) const;

  // os_errno as the kernel would say for the path alone: ENOENT (a missing parent), ENOTDIR, ELOOP,
  // ENAMETOOLONG, EACCES (also for a step into a foreign process's descriptors or memory).
  // A missing last component is not an error: exists = false.
  Result<Place> resolve(const Caller& caller, const Base& base, std::string_view path,
                        Follow follow) const;
  // Reopens a Place's object with new flags, through our own /proc/thread-self/fd.
  Fd reopen(int fd, int flags) const;
  int own_fds() const { return own_fds_.get(); }

private:
  Result<Place> quick(const Base& base, std::string_view path, Follow follow) const;
  Result<Place> walk(const Caller& caller, const Base& base, std::string_view path,
                     Follow follow) const;
  Fd own_fds_;                // /proc/thread-self/fd
  bool own_directory_ = true; // the working directory is this thread's alone
};

// Joins a path to an absolute base and takes out ".", ".." and doubled slashes, by text.
std::string lexical_join(std::string_view base, std::string_view path);
bool is_below(std::string_view path, std::string_view root);
// Links resolved as far as the path exists, the rest kept as text: for names in rules and
// questions, never for an operation.
std::string resolved_as_far(const std::string& path);
// Does this object lie on a procfs? `st` is its fstat: devices with a major number are not asked.
bool is_procfs(int fd, const struct stat& st);

} // namespace nd7::os
