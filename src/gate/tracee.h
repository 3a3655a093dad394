// The processes of a session as the gate knows them: threads that called, and their processes.
//
// A Tracee is one thread (a notification's pid is a thread id), with descriptors that stay valid
// only for that very thread: /proc/TID and a pidfd. A Process is its thread group. Both are made at
// first sight and dropped when their pidfd says they are gone; a reused number gets a new one.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "base/fd.h"
#include "base/result.h"

namespace nd7 {

// How an effect was joined to a tool call (product.md, "join"); empty for none.
struct Join {
  std::string call; // tool_use_id
  std::string how;  // announced, descendant, session, time, own-write
};

struct Process {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0; // since boot, clock ticks (proc_pid_stat(5), field 22)
  pid_t parent = 0;
  pid_t process_session = 0;
  Fd pidfd;
  mutable std::mutex lock; // guards what follows
  std::string exe;         // as confirmed from /proc at the last exec
  std::atomic<bool> exec_pending{false};
  std::string pending_exec; // path of an exec let through and not yet confirmed
  Join join;
  std::unordered_map<std::string, std::uint32_t> reads; // folded: path -> count since last flush

  Join joined() const {
    const std::lock_guard hold(lock);
    return join;
  }
};

struct Tracee {
  pid_t tid = 0;
  Fd proc;  // /proc/TID, O_PATH
  Fd pidfd; // the thread (6.9) or its group
  std::shared_ptr<Process> process;
};

class Tracees {
public:
  // The tracee of a notification; makes it at first sight. Errors: the thread is gone.
  // `fresh` is set when its process was not known before.
  Result<std::shared_ptr<Tracee>> of(pid_t tid, bool* fresh);
  // A process by its pid, if known and alive.
  std::shared_ptr<Process> process(pid_t pid);
  // Does this pid (or thread id) belong to the session: itself or one of its ancestors is the
  // session's first process, or it is known. Reads /proc for processes that never called.
  bool belongs(pid_t pid);
  void set_root(pid_t pid) { root_ = pid; }
  // The subreaper whose adopted children are orphans of the session, and a child of its own that is
  // not (the network helper; 0 for none).
  void set_reaper(pid_t reaper, pid_t own_child) {
    reaper_ = reaper;
    own_child_ = own_child;
  }
  pid_t root() const { return root_; }
  // All processes of the session that are alive, known or not (walks /proc).
  std::vector<pid_t> all();
  // Drops what is dead; returns the processes dropped.
  std::vector<std::shared_ptr<Process>> sweep();
  std::size_t count();

private:
  std::mutex lock_;
  std::unordered_map<pid_t, std::shared_ptr<Tracee>> threads_;
  std::unordered_map<pid_t, std::shared_ptr<Process>> processes_;
  std::unordered_map<pid_t, std::uint64_t> members_; // pid -> start ticks, proven members
  std::atomic<pid_t> root_{0};
  pid_t reaper_ = 0;
  pid_t own_child_ = 0;
};

struct ProcStat {
  pid_t parent = 0, group = 0, session = 0, tty_foreground = 0;
  int tty = 0;
  char state = '?';
  std::uint64_t start_ticks = 0;
};
Result<ProcStat> read_proc_stat(pid_t pid);
// "Name:\tvalue" lines of /proc/PID/status; empty when absent.
std::string proc_status_field(const std::string& status, const char* name);
Result<std::string> read_proc_file(pid_t pid, const char* name, std::size_t size_max = 65536);

} // namespace nd7
