// Threads for calls that may block: FIFO opens, connects, slow file systems.
//
// With WAIT_KILLABLE_RECV a received call is deaf to signals, so the pool watches the caller: when
// a signal it would act on is pending, the blocked system call of ours is interrupted and the
// caller gets what the kernel would have given it (ERESTARTSYS, which becomes a restart or EINTR by
// its own handler's flags).
#pragma once

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <sys/types.h>

namespace nd7 {

class Pool {
public:
  // ERESTARTSYS: never leaves the kernel while a signal is pending.
  static constexpr int restart_sys = 512;
  // Installs the interrupting signal's handler (SIGUSR1, no SA_RESTART).
  Pool();
  ~Pool();
  // Runs `work` on a pool thread. `caller` is watched while it runs. `gone` says whether the
  // notification is still worth answering.
  void submit(pid_t caller, std::function<void()> work, std::function<bool()> gone);
  // Called every few milliseconds while something is blocked; true while jobs are running.
  bool interrupt_signalled();
  // For work: a system call of ours, which may block. Repeats it while it says EINTR for no signal
  // of the caller's: the interrupting signal of a job that was just done can reach the thread's
  // next one. `call` returns as system calls do. Returns 0 or the errno that the caller gets.
  template <class Call> static int run_interruptibly(pid_t caller, Call call) {
    for (;;) {
      if (call() >= 0) return 0;
      if (errno != EINTR) return errno;
      if (const int error = interrupted_error(caller); error != 0) return error;
    }
  }

private:
  struct Job {
    pid_t caller;
    std::function<void()> work;
    std::function<bool()> gone;
    std::atomic<pid_t> thread{0};
  };
  void run();
  // Our call said EINTR: what the caller's signal makes of it, 0 when there is none.
  static int interrupted_error(pid_t caller);
  static constexpr std::size_t threads_max = 256;
  std::mutex lock_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Job>> waiting_;
  std::vector<std::shared_ptr<Job>> running_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool stop_ = false;
  std::thread watcher_;
};

} // namespace nd7
