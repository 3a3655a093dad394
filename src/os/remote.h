// Reading and writing a tracee's memory, and taking copies of its descriptors.
//
// RemotePtr<T> is an address in the other process: it cannot be dereferenced by mistake.
// process_vm_readv is used where it works, /proc/TID/mem elsewhere (Docker's default profile allows
// neither to an unprivileged ptrace-less process; found out once, see probe()).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <sys/types.h>

#include "base/fd.h"
#include "base/result.h"

namespace nd7::os {

template <class T> struct RemotePtr {
  std::uint64_t address = 0;
  explicit operator bool() const { return address != 0; }
};

// Reads exactly `size` bytes; EFAULT when not all are readable.
Result<> read_remote(pid_t tid, std::uint64_t address, void* into, std::size_t size);
// Reads up to `size` bytes, stopping at the first unreadable page; the count, or an error if none.
Result<std::size_t> read_remote_some(pid_t tid, std::uint64_t address, void* into,
                                     std::size_t size);
template <class T> Result<T> read_remote(pid_t tid, RemotePtr<T> from) {
  T value{};
  if (auto ok = read_remote(tid, from.address, &value, sizeof value); !ok)
    return std::unexpected(ok.error());
  return value;
}
// A NUL-terminated string. os_errno: EFAULT, ENAMETOOLONG when no NUL within `length_max` bytes.
Result<std::string> read_remote_string(pid_t tid, std::uint64_t address, std::size_t length_max);
Result<> write_remote(pid_t tid, std::uint64_t address, const void* from, std::size_t size);

// A duplicate (close-on-exec) of the tracee's descriptor; `pidfd` names the thread or process.
Result<Fd> take_fd(int pidfd, int number);
// A pidfd for a thread: PIDFD_THREAD from 6.9, below that for its thread group.
Result<Fd> open_pidfd(pid_t tid, pid_t tgid);

} // namespace nd7::os
