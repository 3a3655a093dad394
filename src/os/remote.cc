#include "os/remote.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <fmt/format.h>

#include "os/kernel_abi.h"

namespace nd7::os {
namespace {

constexpr std::size_t page = 4096;

std::atomic<bool> vm_calls_work{true};

Fd open_mem(pid_t tid, int flags) {
  char path[32];
  *fmt::format_to(path, "/proc/{}/mem", tid) = 0;
  return Fd(::open(path, flags | O_CLOEXEC));
}

// One read that may come out short at an unreadable page.
ssize_t read_once(pid_t tid, std::uint64_t address, void* into, std::size_t size) {
  if (vm_calls_work.load(std::memory_order_relaxed)) {
    const iovec local{into, size};
    const iovec remote{reinterpret_cast<void*>(address), size};
    const ssize_t n = process_vm_readv(tid, &local, 1, &remote, 1, 0);
    if (n >= 0 || (errno != ENOSYS && errno != EPERM)) return n;
    const int error = errno;
    const Fd mem = open_mem(tid, O_RDONLY);
    if (!mem) {
      errno = error;
      return -1;
    }
    if (error == ENOSYS) vm_calls_work = false;
    return pread(mem.get(), into, size, static_cast<off_t>(address));
  }
  const Fd mem = open_mem(tid, O_RDONLY);
  return mem ? pread(mem.get(), into, size, static_cast<off_t>(address)) : -1;
}

} // namespace

Result<std::size_t> read_remote_some(pid_t tid, std::uint64_t address, void* into,
                                     std::size_t size) {
  auto* out = static_cast<char*>(into);
  std::size_t done = 0;
  while (done < size) {
    // Stop at page ends: a transfer is all or nothing within one iovec on some kernels.
    const std::uint64_t at = address + done;
    const std::size_t step = std::min<std::size_t>(size - done, page - at % page);
    const ssize_t n = read_once(tid, at, out + done, step);
    if (n <= 0) {
      if (done > 0) return done;
      const int error = n < 0 && errno != EIO ? errno : EFAULT;
      return os_error("read the caller's memory", error);
    }
    done += static_cast<std::size_t>(n);
  }
  return done;
}

Result<> read_remote(pid_t tid, std::uint64_t address, void* into, std::size_t size) {
  const ssize_t n = read_once(tid, address, into, size);
  if (n == static_cast<ssize_t>(size)) return {};
  auto some = read_remote_some(tid, address, into, size);
  if (!some) return std::unexpected(some.error());
  if (*some != size) return os_error("read the caller's memory", EFAULT);
  return {};
}

Result<std::string> read_remote_string(pid_t tid, std::uint64_t address, std::size_t length_max) {
  char buffer[page];
  std::string out;
  for (;;) {
    const std::uint64_t at = address + out.size();
    // To the page's end: the string may end just before an unmapped page.
    const std::size_t step = page - at % page;
    const ssize_t n = read_once(tid, at, buffer, step);
    if (n <= 0) return os_error("read the caller's memory", n < 0 && errno != EIO ? errno : EFAULT);
    const auto got = static_cast<std::size_t>(n);
    if (const void* end = std::memchr(buffer, 0, got)) {
      out.append(buffer, static_cast<std::size_t>(static_cast<const char*>(end) - buffer));
      if (out.size() > length_max) return os_error("path", ENAMETOOLONG);
      return out;
    }
    out.append(buffer, got);
    if (out.size() > length_max) return os_error("path", ENAMETOOLONG);
  }
}

Result<> write_remote(pid_t tid, std::uint64_t address, const void* from, std::size_t size) {
  const iovec local{const_cast<void*>(from), size};
  const iovec remote{reinterpret_cast<void*>(address), size};
  if (process_vm_writev(tid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size)) return {};
  const Fd mem = open_mem(tid, O_RDWR);
  if (mem &&
      pwrite(mem.get(), from, size, static_cast<off_t>(address)) == static_cast<ssize_t>(size))
    return {};
  return os_error("write the caller's memory", EFAULT);
}

Result<Fd> take_fd(int pidfd, int number) {
  Fd fd(static_cast<int>(syscall(SYS_pidfd_getfd, pidfd, number, 0)));
  if (!fd) return os_error("take the caller's descriptor");
  return fd;
}

Result<Fd> open_pidfd(pid_t tid, pid_t tgid) {
  Fd fd(static_cast<int>(syscall(SYS_pidfd_open, tid, PIDFD_THREAD)));
  if (!fd && errno == EINVAL) fd.reset(static_cast<int>(syscall(SYS_pidfd_open, tgid, 0)));
  if (!fd) return os_error("pidfd_open");
  return fd;
}

} // namespace nd7::os
