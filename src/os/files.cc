#include "os/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <memory>

#include "base/bytes.h"

namespace nd7::os {
namespace {

template <class Call> auto retry(Call call) {
  for (;;) {
    const auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Result<> sync_directory(const std::string& path) {
  auto directory = open_file(path, O_RDONLY | O_DIRECTORY);
  if (!directory) return std::unexpected(directory.error());
  if (::fsync(directory->get()) != 0) return os_error("sync " + path);
  return {};
}

std::string temporary_name(const std::string& path) {
  char random[8];
  if (::getrandom(random, sizeof random, 0) != sizeof random) ::abort();
  return path + ".tmp." + hex({random, sizeof random});
}

} // namespace

Result<Fd> open_file(const std::string& path, int flags, unsigned mode) {
  const int fd = retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); });
  if (fd < 0) return os_error("open " + path);
  return Fd(fd);
}

Result<std::uint64_t> file_size(int fd) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return os_error("fstat");
  return static_cast<std::uint64_t>(st.st_size);
}

Result<std::string> read_at(int fd, std::uint64_t offset, std::size_t size) {
  std::string bytes(size, '\0');
  std::size_t got = 0;
  while (got < size) {
    const ssize_t n = retry([&] {
      return ::pread(fd, bytes.data() + got, size - got, static_cast<off_t>(offset + got));
    });
    if (n < 0) return os_error("read");
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  bytes.resize(got);
  return bytes;
}

Result<std::string> read_file(const std::string& path, std::size_t size_bytes_max) {
  auto fd = open_file(path, O_RDONLY);
  if (!fd) return std::unexpected(fd.error());
  std::string bytes;
  for (;;) { // not by st_size: files of procfs have none
    const std::size_t before = bytes.size();
    bytes.resize(before + 65536);
    const ssize_t n = retry([&] { return ::read(fd->get(), bytes.data() + before, 65536); });
    if (n < 0) return os_error("read " + path);
    bytes.resize(before + static_cast<std::size_t>(n));
    if (n == 0) return bytes;
    if (bytes.size() > size_bytes_max) {
      return fail("read " + path + ": longer than " + std::to_string(size_bytes_max) + " bytes");
    }
  }
}

Result<> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = retry([&] { return ::write(fd, bytes.data(), bytes.size()); });
    if (n < 0) return os_error("write");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<> replace_file(const std::string& path, std::string_view content,
                      const ReplaceOptions& options) {
  const std::string temporary = temporary_name(path);
  auto fd = open_file(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, options.mode);
  if (!fd) return std::unexpected(fd.error());
  const auto give_up = [&](std::unexpected<Error> error) -> Result<> {
    ::unlink(temporary.c_str());
    return error;
  };
  if (auto done = write_all(fd->get(), content); !done) {
    return give_up(os_error("write " + temporary, done.error().os_errno));
  }
  if (options.sync && ::fsync(fd->get()) != 0) return give_up(os_error("sync " + temporary));
  if (options.replace) {
    if (::rename(temporary.c_str(), path.c_str()) != 0)
      return give_up(os_error("rename to " + path));
  } else {
    if (::link(temporary.c_str(), path.c_str()) != 0) return give_up(os_error("link to " + path));
    ::unlink(temporary.c_str());
  }
  if (options.sync) return sync_directory(parent_of(path));
  return {};
}

Result<Lock> lock_file(const std::string& path, LockWait wait) {
  auto fd = open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW);
  if (!fd) return std::unexpected(fd.error());
  const int how = LOCK_EX | (wait == LockWait::no ? LOCK_NB : 0);
  if (retry([&] { return ::flock(fd->get(), how); }) != 0) return os_error("lock " + path);
  return Lock(std::move(*fd));
}

bool is_locked(const std::string& path) {
  auto fd = open_file(path, O_RDONLY | O_NOFOLLOW);
  if (!fd) return false;
  for (int attempt = 0; attempt < 4; ++attempt) {
    if (::flock(fd->get(), LOCK_SH | LOCK_NB) == 0) return false;
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    const timespec pause{0, 500'000};
    ::nanosleep(&pause, nullptr);
  }
  return true;
}

Result<> make_private_directory(const std::string& path) {
  if (path.empty() || path.front() != '/') return fail("not an absolute path: '" + path + "'");
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string parent = path.substr(0, slash);
    // Anything but "made" is judged at the last component, which is opened below.
    ::mkdir(parent.c_str(), 0700);
  }
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return os_error("make directory " + path);
  auto fd = open_file(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!fd) {
    if (fd.error().os_errno == ELOOP || fd.error().os_errno == ENOTDIR) {
      return fail(path + " is a link or no directory; nd7 keeps private files there",
                  "move it away");
    }
    return std::unexpected(fd.error());
  }
  struct stat st {};
  if (::fstat(fd->get(), &st) != 0) return os_error("fstat " + path);
  if (st.st_uid != ::geteuid()) {
    return fail(path + " belongs to uid " + std::to_string(st.st_uid) + ", not to you");
  }
  if ((st.st_mode & 077) != 0) {
    return fail(path + " is open to others", "chmod 700 " + path);
  }
  return {};
}

Result<std::vector<std::string>> list_directory(const std::string& path) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  if (!directory) {
    if (errno == ENOENT) return names;
    return os_error("list " + path);
  }
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(directory.get());
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  if (errno != 0) return os_error("list " + path);
  std::sort(names.begin(), names.end());
  return names;
}

} // namespace nd7::os
