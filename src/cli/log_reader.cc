#include "cli/log_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "os/files.h"

namespace nd7 {

Result<LogReader> LogReader::open(const std::string& file) {
  auto fd = os::open_file(file, O_RDONLY);
  if (!fd) return std::unexpected(fd.error());
  return LogReader(std::move(*fd));
}

Result<>
LogReader::read(const std::function<bool(const Entry& entry, std::string_view line)>& each) {
  std::string block(std::size_t{1} << 18, '\0');
  bool go_on = true;
  Entry entry;
  while (go_on) {
    const ssize_t n = ::read(fd_.get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_error("read the log");
    if (n == 0) break;
    lines_.feed({block.data(), static_cast<std::size_t>(n)}, [&](std::string_view line) {
      if (!read_entry(line, entry)) {
        ++malformed_;
      } else {
        go_on = each(entry, line);
      }
      return go_on;
    });
  }
  return {};
}

} // namespace nd7
