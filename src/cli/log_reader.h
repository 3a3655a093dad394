// Reads the entries of a log file in order, in blocks; memory stays flat. For show and sessions;
// proof is core/verify.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "core/event.h"

namespace nd7 {

class LogReader {
public:
  static Result<LogReader> open(const std::string& file);
  // Hands every entry not yet read to `each` (false stops), with its line. A line that is no entry
  // is counted in malformed() and passed over. Call again to read what was appended since.
  Result<> read(const std::function<bool(const Entry& entry, std::string_view line)>& each);
  std::uint64_t malformed() const { return malformed_; }
  // Bytes after the last newline: an entry being written, or torn by a crash.
  std::uint64_t torn_bytes() const { return lines_.rest().size(); }

private:
  explicit LogReader(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
  LineSplitter lines_;
  std::uint64_t malformed_ = 0;
};

} // namespace nd7
