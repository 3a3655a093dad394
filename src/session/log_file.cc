#include "session/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <mutex>

#include "base/clock.h"
#include "base/json.h"
#include "core/chain.h"
#include "core/event.h"
#include "core/log_format.h"
#include "os/files.h"

namespace nd7 {
namespace {

constexpr int lock_attempts = 400; // of 5 ms: two seconds
constexpr std::size_t tail_block_size_bytes = 64 << 10;

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "unknown";
  return name;
}

// Readers that ask whether a session runs hold the lock for a moment, so wait a little for it.
Result<os::Lock> lock_for_session(const std::string& path, const std::string& session_id) {
  for (int attempt = 0;; ++attempt) {
    auto lock = os::lock_file(path, os::LockWait::no);
    if (lock || lock.error().os_errno != EWOULDBLOCK) return lock;
    if (attempt == lock_attempts) {
      return fail("the log of session " + session_id + " is being written by another process");
    }
    const timespec pause{0, 5'000'000};
    ::nanosleep(&pause, nullptr);
  }
}

// A raw line break in a body can only be white space between tokens (the scanner refused it inside
// strings); an entry is one line.
std::string one_line(std::string_view body) {
  std::string line(body);
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return line;
}

class FileLog final : public LogFile {
public:
  FileLog(std::string directory, std::string session_id, bool exclusive)
      : directory_(std::move(directory)), session_id_(std::move(session_id)), exclusive_(exclusive),
        host_(host_name()) {}

  Result<> start();
  Result<std::uint64_t> append(const EntryInput& entry) override;
  void set_signer(Signer signer, std::string key_id) override;
  Result<> checkpoint() override;
  std::uint64_t count() const override;
  std::string head_hash() const override;

private:
  std::string path(std::string_view name) const { return directory_ + "/" + std::string(name); }
  // Takes the lock when it is not held for the session, and looks whether others wrote meanwhile.
  Result<os::Lock> enter();
  Result<> load_tail();
  Result<std::string> last_line(std::uint64_t end) const;
  Result<> check_head(bool log_empty, const Head& last, const std::string& prev);
  Result<> cut_torn_tail(std::uint64_t whole, std::uint64_t size);
  Result<std::uint64_t> append_locked(const EntryInput& entry);
  Result<> write_line(const std::string& line);
  Result<> write_head(const Head& head);

  const std::string directory_;
  const std::string session_id_;
  const bool exclusive_;
  const std::string host_;
  mutable std::mutex mutex_;
  Fd log_;
  Fd head_file_;
  os::Lock lock_;
  Signer signer_;
  std::string key_id_;
  std::uint64_t next_seq_ = 0;
  std::string previous_;         // hash of the newest entry, or the first link
  std::uint64_t size_bytes_ = 0; // of the log after our last look
  std::string failed_;           // why no append is possible any more
};

Result<> FileLog::start() {
  if (auto made = os::make_private_directory(directory_); !made) return made;
  if (exclusive_) {
    auto lock = lock_for_session(path(log_format::lock_name), session_id_);
    if (!lock) return std::unexpected(lock.error());
    lock_ = std::move(*lock);
  }
  auto log = os::open_file(path(log_format::events_name), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW);
  if (!log) return std::unexpected(log.error());
  log_ = std::move(*log);
  auto head = os::open_file(path(log_format::head_name), O_RDWR | O_CREAT | O_NOFOLLOW);
  if (!head) return std::unexpected(head.error());
  head_file_ = std::move(*head);
  if (exclusive_) return load_tail();
  auto lock = os::lock_file(path(log_format::lock_name), os::LockWait::yes);
  if (!lock) return std::unexpected(lock.error());
  return load_tail();
}

// The last whole line that ends (with its newline) at `end`.
Result<std::string> FileLog::last_line(std::uint64_t end) const {
  std::string line;
  std::uint64_t at = end - 1; // without the newline
  while (at > 0) {
    const std::uint64_t block = std::min<std::uint64_t>(at, tail_block_size_bytes);
    auto bytes = os::read_at(log_.get(), at - block, static_cast<std::size_t>(block));
    if (!bytes) return std::unexpected(bytes.error());
    const std::size_t newline = bytes->rfind('\n');
    if (newline != std::string::npos) {
      line.insert(0, *bytes, newline + 1);
      return line;
    }
    line.insert(0, *bytes);
    at -= block;
    if (line.size() > log_format::entry_size_bytes_max) {
      return fail("the last line of " + path(log_format::events_name) + " is too long");
    }
  }
  return line;
}

// Where the log stands: its last whole entry, checked against itself, the session and the head.
Result<> FileLog::load_tail() {
  auto size = os::file_size(log_.get());
  if (!size) return std::unexpected(size.error());
  std::uint64_t whole = *size; // up to and with the last newline
  while (whole > 0) {
    const std::uint64_t block = std::min<std::uint64_t>(whole, tail_block_size_bytes);
    auto bytes = os::read_at(log_.get(), whole - block, static_cast<std::size_t>(block));
    if (!bytes) return std::unexpected(bytes.error());
    const std::size_t newline = bytes->rfind('\n');
    if (newline != std::string::npos) {
      whole = whole - block + newline + 1;
      break;
    }
    whole -= block;
  }
  next_seq_ = 0;
  previous_ = first_link(session_id_);
  std::string prev;
  if (whole > 0) {
    auto line = last_line(whole);
    if (!line) return std::unexpected(line.error());
    Entry last;
    const std::string where = "the last entry of " + path(log_format::events_name);
    if (auto read = read_entry(*line, last); !read) {
      return fail(where + " cannot be read: " + read.error().text, "nd7 verify " + session_id_);
    }
    const bool cuttable = line->size() > log_format::tail_size;
    const std::string kept =
        cuttable ? line->substr(0, line->size() - log_format::tail_size) + "}" : std::string();
    if (!cuttable || blake3_hex(kept) != last.hash) {
      return fail(where + " does not match its hash", "nd7 verify " + session_id_);
    }
    if (last.session_id != session_id_) {
      return fail(where + " belongs to another session", "nd7 verify " + session_id_);
    }
    next_seq_ = last.seq + 1;
    previous_ = last.hash;
    prev = last.prev;
  }
  const Head last_head{next_seq_ == 0 ? 0 : next_seq_ - 1, previous_};
  if (auto checked = check_head(whole == 0, last_head, prev); !checked) return checked;
  size_bytes_ = whole;
  if (whole < *size) return cut_torn_tail(whole, *size);
  return {};
}

Result<> FileLog::check_head(bool log_empty, const Head& last, const std::string& prev) {
  auto text = os::read_at(head_file_.get(), 0, log_format::head_size_bytes_max + 1);
  if (!text) return std::unexpected(text.error());
  if (text->empty()) return log_empty ? Result<>{} : write_head(last);
  const auto head = parse_head(*text);
  if (head && !log_empty) {
    if (*head == last) return {};
    if (head->seq + 1 == last.seq && head->hash == prev) return write_head(last);
  }
  const std::string stands = log_empty ? "is empty" : "ends with entry " + std::to_string(last.seq);
  return fail("the log of session " + session_id_ + " " + stands + ", its head says " +
                  (head ? "entry " + std::to_string(head->seq) : std::string("nothing readable")) +
                  "; it is not continued",
              "nd7 verify " + session_id_);
}

// A write that a crash cut short was never acknowledged: it goes, and the log says so.
Result<> FileLog::cut_torn_tail(std::uint64_t whole, std::uint64_t size) {
  const auto length = static_cast<std::size_t>(
      std::min<std::uint64_t>(size - whole, log_format::entry_size_bytes_max));
  auto torn = os::read_at(log_.get(), whole, length);
  if (!torn) return std::unexpected(torn.error());
  if (::ftruncate(log_.get(), static_cast<off_t>(whole)) != 0) {
    return os_error("cut the torn tail of " + path(log_format::events_name));
  }
  const std::string body = JsonWriter()
                               .text("reason", "torn tail")
                               .null("lost")
                               .texts("inflight", {})
                               .count("torn_bytes", size - whole)
                               .text("torn_hash", blake3_hex(*torn))
                               .finish();
  auto appended =
      append_locked({.source = log_format::source_nd7, .kind = log_format::kind_gap, .body = body});
  if (!appended) return std::unexpected(appended.error());
  return {};
}

Result<os::Lock> FileLog::enter() {
  if (!failed_.empty()) return fail(failed_);
  if (exclusive_) return os::Lock();
  auto lock = os::lock_file(path(log_format::lock_name), os::LockWait::yes);
  if (!lock) return lock;
  auto size = os::file_size(log_.get());
  if (!size) return std::unexpected(size.error());
  if (*size != size_bytes_) {
    if (auto loaded = load_tail(); !loaded) return std::unexpected(loaded.error());
  }
  return lock;
}

// One write(2). When the disk is full the part that went in is taken back.
Result<> FileLog::write_line(const std::string& line) {
  std::string_view left = line;
  while (!left.empty()) {
    const ssize_t n = ::write(log_.get(), left.data(), left.size());
    if (n >= 0) {
      left.remove_prefix(static_cast<std::size_t>(n));
      continue;
    }
    if (errno == EINTR) continue;
    const int error = errno;
    if (left.size() != line.size() &&
        ::ftruncate(log_.get(), static_cast<off_t>(size_bytes_)) != 0) {
      failed_ = "the log of session " + session_id_ + " has a torn entry that cannot be taken back";
    }
    return os_error("append to " + path(log_format::events_name), error);
  }
  return {};
}

Result<> FileLog::write_head(const Head& head) {
  const std::string text = head_text(head);
  for (;;) {
    const ssize_t n = ::pwrite(head_file_.get(), text.data(), text.size(), 0);
    if (n == static_cast<ssize_t>(text.size())) return {};
    if (n >= 0) errno = ENOSPC;
    if (errno != EINTR) return os_error("write " + path(log_format::head_name));
  }
}

Result<std::uint64_t> FileLog::append_locked(const EntryInput& entry) {
  auto valid = scan_json_object(entry.body, {.size_bytes_max = log_format::entry_size_bytes_max});
  if (!valid) return fail("a log entry's body is no JSON object: " + valid.error().text);
  std::string flat;
  std::string_view body = entry.body;
  if (body.find_first_of("\r\n") != std::string_view::npos) {
    flat = one_line(body);
    body = flat;
  }
  const Clock& clock = system_clock();
  const SealedEntry sealed = seal_entry({
      .session_id = session_id_,
      .seq = next_seq_,
      .ts = entry.ts != 0 ? entry.ts : clock.wall_ns(),
      .mono = entry.mono != 0 ? entry.mono : clock.boot_ns(),
      .host = host_,
      .source = entry.source,
      .kind = entry.kind,
      .prev = previous_,
      .body = body,
  });
  if (sealed.line.size() > log_format::entry_size_bytes_max) {
    return fail("a log entry of " + std::to_string(sealed.line.size()) + " bytes is too long");
  }
  if (auto written = write_line(sealed.line); !written) return std::unexpected(written.error());
  if (auto written = write_head({next_seq_, sealed.hash}); !written) {
    if (::ftruncate(log_.get(), static_cast<off_t>(size_bytes_)) != 0) {
      failed_ = "the log of session " + session_id_ + " and its head cannot be brought together";
    }
    return std::unexpected(written.error());
  }
  size_bytes_ += sealed.line.size();
  previous_ = sealed.hash;
  return next_seq_++;
}

Result<std::uint64_t> FileLog::append(const EntryInput& entry) {
  const std::lock_guard guard(mutex_);
  auto lock = enter();
  if (!lock) return std::unexpected(lock.error());
  return append_locked(entry);
}

void FileLog::set_signer(Signer signer, std::string key_id) {
  const std::lock_guard guard(mutex_);
  signer_ = std::move(signer);
  key_id_ = std::move(key_id);
}

Result<> FileLog::checkpoint() {
  Fd synced;
  {
    const std::lock_guard guard(mutex_);
    if (!signer_) return fail("no key to sign a checkpoint with");
    auto lock = enter();
    if (!lock) return std::unexpected(lock.error());
    const std::int64_t ts = system_clock().wall_ns();
    const std::string signature =
        signer_(checkpoint_message(session_id_, next_seq_, previous_, ts));
    const std::string body = JsonWriter()
                                 .count("count", next_seq_)
                                 .text("head", previous_)
                                 .text("key", key_id_)
                                 .text("signature", signature)
                                 .finish();
    auto appended = append_locked({.source = log_format::source_nd7,
                                   .kind = log_format::kind_checkpoint,
                                   .body = body,
                                   .ts = ts});
    if (!appended) return std::unexpected(appended.error());
    synced = Fd(::fcntl(log_.get(), F_DUPFD_CLOEXEC, 3));
    if (!synced) return os_error("dup");
  }
  // Outside the mutex: a sync takes milliseconds, and other threads have calls to answer.
  if (::fdatasync(synced.get()) != 0) return os_error("sync " + path(log_format::events_name));
  if (::fdatasync(head_file_.get()) != 0) return os_error("sync " + path(log_format::head_name));
  return {};
}

std::uint64_t FileLog::count() const {
  const std::lock_guard guard(mutex_);
  return next_seq_;
}

std::string FileLog::head_hash() const {
  const std::lock_guard guard(mutex_);
  return previous_;
}

} // namespace

Result<std::unique_ptr<LogFile>> LogFile::open(const std::string& directory, std::string session_id,
                                               bool exclusive) {
  auto log = std::make_unique<FileLog>(directory, std::move(session_id), exclusive);
  if (auto started = log->start(); !started) return std::unexpected(started.error());
  return log;
}

} // namespace nd7
