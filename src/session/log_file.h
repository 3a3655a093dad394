// The log of one session on disk: append an entry, keep the head, repair a torn tail.
//
// sessions/ID/events.ndjson  one entry a line, append only
// sessions/ID/head           "<seq> <hash>\n" of the newest entry, advisory: one behind is repaired
// sessions/ID/lock           flock; held by the supervisor for a session's life, or per append
// Thread-safe. An entry is in the page cache (write(2) returned) before append() returns.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace nd7 {

struct EntryInput {
  std::string_view source; // "effect:kernel", "nd7", "intent:claude-code"
  std::string_view kind;
  std::string_view body;  // one canonical JSON object
  std::int64_t ts = 0;    // ns since 1970; 0: now
  std::uint64_t mono = 0; // ns since boot; 0: now
};

// Signs a checkpoint message; returns hex(signature). Set by session/keys.h.
using Signer = std::function<std::string(std::string_view message)>;

class LogFile {
public:
  // `directory` (0700, ours) is made if missing. `exclusive`: the lock is held until close (the
  // supervisor); else it is taken around each append (hooks outside a session, many at once).
  // Continues an existing log after checking its tail against the head: a torn last line is cut
  // into a `gap` entry, any other disagreement is an error.
  static Result<std::unique_ptr<LogFile>> open(const std::string& directory, std::string session_id,
                                               bool exclusive);
  virtual ~LogFile() = default;
  // The sequence number given. Errors leave the log as it was (a partial line is truncated away,
  // or the log is marked failed and every later append fails).
  virtual Result<std::uint64_t> append(const EntryInput& entry) = 0;
  virtual void set_signer(Signer signer, std::string key_id) = 0;
  // Appends a signed `checkpoint` entry and syncs the file to the disk.
  virtual Result<> checkpoint() = 0;
  virtual std::uint64_t count() const = 0;
  virtual std::string head_hash() const = 0;
};

} // namespace nd7
