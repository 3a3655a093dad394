#include "gate/pool.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <string>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gate/tracee.h"

namespace nd7 {
namespace {

constexpr auto watch_interval = std::chrono::milliseconds(5);

std::uint64_t mask_of(const std::string& status, const char* name) {
  return std::strtoull(proc_status_field(status, name).c_str(), nullptr, 16);
}

struct Pending {
  bool own = false;    // for this very thread
  bool shared = false; // for its process
};

Pending pending_of(pid_t tid) {
  auto status = read_proc_file(tid, "status");
  if (!status) return {true, false}; // gone: stop working for it
  const std::string state = proc_status_field(*status, "State");
  if (state.starts_with('Z') || state.starts_with('X')) return {true, false};
  const std::uint64_t act = ~(mask_of(*status, "SigBlk") | mask_of(*status, "SigIgn"));
  // Ignored by default, without being marked so: CHLD, CONT, URG, WINCH.
  const auto bit = [](int number) { return std::uint64_t{1} << (number - 1); };
  const std::uint64_t harmless = bit(SIGCHLD) | bit(SIGCONT) | bit(SIGURG) | bit(SIGWINCH);
  const std::uint64_t caught = mask_of(*status, "SigCgt");
  const std::uint64_t matters = act & ~(harmless & ~caught);
  return {(mask_of(*status, "SigPnd") & matters) != 0, (mask_of(*status, "ShdPnd") & matters) != 0};
}

} // namespace

Pool::Pool() {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, nullptr);
  watcher_ = std::thread([this] {
    std::unique_lock hold(lock_);
    while (!stop_) {
      if (running_.empty()) {
        wake_.wait(hold, [this] { return stop_ || !running_.empty(); });
        continue;
      }
      hold.unlock();
      interrupt_signalled();
      std::this_thread::sleep_for(watch_interval);
      hold.lock();
    }
  });
}

Pool::~Pool() {
  {
    const std::lock_guard hold(lock_);
    stop_ = true;
  }
  wake_.notify_all();
  watcher_.join();
  for (std::thread& thread : threads_) {
    // A blocked call is interrupted until its thread is done.
    thread.detach();
  }
}

void Pool::submit(pid_t caller, std::function<void()> work, std::function<bool()> gone) {
  auto job = std::make_shared<Job>();
  job->caller = caller;
  job->work = std::move(work);
  job->gone = std::move(gone);
  const std::lock_guard hold(lock_);
  waiting_.push_back(std::move(job));
  if (idle_ < waiting_.size() && threads_.size() < threads_max)
    threads_.emplace_back([this] { run(); });
  wake_.notify_all();
}

void Pool::run() {
  unshare(CLONE_FS);
  std::unique_lock hold(lock_);
  while (!stop_) {
    if (waiting_.empty()) {
      ++idle_;
      wake_.wait(hold, [this] { return stop_ || !waiting_.empty(); });
      --idle_;
      continue;
    }
    auto job = waiting_.front();
    waiting_.pop_front();
    running_.push_back(job);
    job->thread = static_cast<pid_t>(syscall(SYS_gettid));
    hold.unlock();
    wake_.notify_all(); // the watcher
    job->work();
    hold.lock();
    job->thread = 0;
    running_.erase(std::find(running_.begin(), running_.end(), job));
  }
}

bool Pool::interrupt_signalled() {
  std::vector<std::shared_ptr<Job>> jobs;
  {
    const std::lock_guard hold(lock_);
    jobs = running_;
  }
  for (const auto& job : jobs) {
    const Pending pending = pending_of(job->caller);
    if (!pending.own && !pending.shared && !job->gone()) continue;
    if (const pid_t thread = job->thread.load(); thread != 0)
      syscall(SYS_tgkill, getpid(), thread, SIGUSR1);
  }
  return !jobs.empty();
}

int Pool::interrupted_error(pid_t caller) {
  const Pending pending = pending_of(caller);
  if (!pending.own && !pending.shared) return 0;
  // A signal for the whole process may be taken by another thread; then there is nothing that
  // would turn ERESTARTSYS into something a program may see. Alone, or addressed, it is exact.
  if (pending.own) return restart_sys;
  auto status = read_proc_file(caller, "status");
  return status && proc_status_field(*status, "Threads") == "1" ? restart_sys : EINTR;
}

} // namespace nd7
