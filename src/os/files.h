// Files of our own: whole reads, atomic replacement, appending, locks, private directories.
// What it does not do: anything for the processes of a session; that is resolve.h and the gate.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace nd7::os {

// open(2) with O_CLOEXEC, retried on EINTR. The error names the path.
Result<Fd> open_file(const std::string& path, int flags, unsigned mode = 0600);
// The whole file; an error when it is longer than `size_bytes_max`.
Result<std::string> read_file(const std::string& path, std::size_t size_bytes_max);
// All bytes at `offset` of a descriptor (pread until done or end of file).
Result<std::string> read_at(int fd, std::uint64_t offset, std::size_t size);
Result<std::uint64_t> file_size(int fd);
// All of `bytes` from the descriptor's position; retried on EINTR and after a short write.
Result<> write_all(int fd, std::string_view bytes);

// Replaces `path` as a whole: a new file beside it (O_EXCL, `mode`), written, synced, renamed over
// it, the directory synced. Readers see the old or the new content and nothing between. With
// `replace` false the name is given with link(2), and EEXIST is an error (os_errno says so).
struct ReplaceOptions {
  unsigned mode = 0600;
  bool sync = true;
  bool replace = true;
};
Result<> replace_file(const std::string& path, std::string_view content,
                      const ReplaceOptions& options = {});

// A flock(2) on a file, let go when destroyed. The lock belongs to the open file description, so a
// child that inherits the descriptor keeps it; ours are all close-on-exec.
class Lock {
public:
  Lock() = default;
  explicit Lock(Fd fd) : fd_(std::move(fd)) {}
  bool held() const { return static_cast<bool>(fd_); }

private:
  Fd fd_;
};
enum class LockWait : std::uint8_t { no, yes };
// Exclusive. With LockWait::no, EWOULDBLOCK in os_errno means that somebody else holds it.
Result<Lock> lock_file(const std::string& path, LockWait wait);
// Does somebody hold a lock on it? False when the file is missing. Takes a shared lock for a
// moment, so a holder that locks for one append only is asked a few times before it counts.
bool is_locked(const std::string& path);

// Makes `path` and its missing parents with mode 0700. The last component must be a directory, no
// link, of our uid, closed to group and others; else an error that says what to do.
Result<> make_private_directory(const std::string& path);
// Names in a directory without "." and "..", sorted. A missing directory is an empty list.
Result<std::vector<std::string>> list_directory(const std::string& path);

} // namespace nd7::os
