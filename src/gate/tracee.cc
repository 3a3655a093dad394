#include "gate/tracee.h"

#include <cstdlib>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>

#include <fmt/format.h>

#include "os/remote.h"

namespace nd7 {
namespace {

constexpr int ancestors_max = 4096; // deeper chains than any pid namespace allows in practice

bool has_exited(const Fd& pidfd) {
  pollfd wait{pidfd.get(), POLLIN, 0};
  return poll(&wait, 1, 0) > 0;
}

} // namespace

Result<std::string> read_proc_file(pid_t pid, const char* name, std::size_t size_max) {
  char path[64];
  *fmt::format_to(path, "/proc/{}/{}", pid, name) = 0;
  const Fd fd(::open(path, O_RDONLY | O_CLOEXEC));
  if (!fd) return os_error(path);
  std::string out;
  char buffer[4096];
  ssize_t n;
  while (out.size() < size_max && (n = ::read(fd.get(), buffer, sizeof buffer)) > 0)
    out.append(buffer, static_cast<std::size_t>(n));
  return out;
}

Result<ProcStat> read_proc_stat(pid_t pid) {
  auto text = read_proc_file(pid, "stat");
  if (!text) return std::unexpected(text.error());
  // The name is in parentheses and may hold anything, also ") R": the last ")" ends it.
  const std::size_t end = text->rfind(')');
  if (end == std::string::npos) return fail("malformed /proc stat");
  ProcStat out;
  int parent = 0, group = 0, session = 0, foreground = 0;
  unsigned long long start = 0;
  if (std::sscanf(text->c_str() + end + 1,
                  " %c %d %d %d %d %d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                  &out.state, &parent, &group, &session, &out.tty, &foreground, &start) != 7)
    return fail("malformed /proc stat");
  out.parent = parent;
  out.group = group;
  out.session = session;
  out.tty_foreground = foreground;
  out.start_ticks = start;
  return out;
}

std::string proc_status_field(const std::string& status, const char* name) {
  const std::string key = std::string("\n") + name + ":";
  std::size_t at = status.find(key);
  if (at == std::string::npos) return {};
  at += key.size();
  while (at < status.size() && (status[at] == '\t' || status[at] == ' ')) ++at;
  return status.substr(at, status.find('\n', at) - at);
}

Result<std::shared_ptr<Tracee>> Tracees::of(pid_t tid, bool* fresh) {
  *fresh = false;
  {
    const std::lock_guard hold(lock_);
    if (const auto at = threads_.find(tid); at != threads_.end()) {
      if (!has_exited(at->second->pidfd)) return at->second;
      threads_.erase(at); // the number was reused
    }
  }
  auto out = std::make_shared<Tracee>();
  out->tid = tid;
  char path[32];
  *fmt::format_to(path, "/proc/{}", tid) = 0;
  out->proc.reset(::open(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!out->proc) return os_error(path);
  auto status = read_proc_file(tid, "status");
  if (!status) return std::unexpected(status.error());
  const pid_t tgid = std::atoi(proc_status_field(*status, "Tgid").c_str());
  if (tgid <= 0) return os_error(path, ESRCH);
  auto pidfd = os::open_pidfd(tid, tgid);
  if (!pidfd) return std::unexpected(pidfd.error());
  out->pidfd = std::move(*pidfd);

  const std::lock_guard hold(lock_);
  if (const auto at = processes_.find(tgid);
      at != processes_.end() && !has_exited(at->second->pidfd)) {
    out->process = at->second;
  } else {
    auto process = std::make_shared<Process>();
    process->pid = tgid;
    auto stat = read_proc_stat(tgid);
    if (!stat) return std::unexpected(stat.error());
    process->start_ticks = stat->start_ticks;
    process->parent = stat->parent;
    process->process_session = stat->session;
    process->pidfd.reset(static_cast<int>(syscall(SYS_pidfd_open, tgid, 0)));
    if (!process->pidfd) return os_error("pidfd_open");
    processes_[tgid] = process;
    members_[tgid] = stat->start_ticks; // it runs under our filter, or it could not have called
    out->process = std::move(process);
    *fresh = true;
  }
  threads_[tid] = out;
  return out;
}

std::shared_ptr<Process> Tracees::process(pid_t pid) {
  const std::lock_guard hold(lock_);
  const auto at = processes_.find(pid);
  if (at == processes_.end() || has_exited(at->second->pidfd)) return nullptr;
  return at->second;
}

bool Tracees::belongs(pid_t pid) {
  // Up the parents until a proven member is met. A process whose parents died hangs from the
  // supervisor (a subreaper).
  std::vector<std::pair<pid_t, std::uint64_t>> path;
  for (int i = 0; i < ancestors_max && pid > 1; ++i) {
    auto stat = read_proc_stat(pid);
    if (!stat) return false;
    bool member = pid == root_ || (reaper_ != 0 && stat->parent == reaper_ && pid != own_child_);
    if (!member) {
      // A thread id that is not a leader has no entry of its own: look at its group.
      const std::lock_guard hold(lock_);
      const auto at = members_.find(pid);
      member = at != members_.end() && at->second == stat->start_ticks;
    }
    if (member) {
      const std::lock_guard hold(lock_);
      for (const auto& [child, start] : path) members_[child] = start;
      return true;
    }
    path.emplace_back(pid, stat->start_ticks);
    pid = stat->parent;
  }
  return false;
}

std::vector<pid_t> Tracees::all() {
  // Every process of the session descends from the supervisor, which adopts orphans: down the
  // children, which costs nothing for the rest of the machine.
  std::vector<pid_t> out, waiting = {reaper_};
  bool known = false;
  while (!waiting.empty()) {
    const pid_t parent = waiting.back();
    waiting.pop_back();
    if (parent != reaper_) out.push_back(parent);
    DIR* tasks = opendir(fmt::format("/proc/{}/task", parent).c_str());
    while (const dirent* task = tasks != nullptr ? readdir(tasks) : nullptr) {
      if (task->d_name[0] == '.') continue;
      auto text = read_proc_file(parent, fmt::format("task/{}/children", task->d_name).c_str());
      if (!text) continue;
      known = true;
      const char* at = text->c_str();
      char* end = nullptr;
      for (long pid = std::strtol(at, &end, 10); end != at; pid = std::strtol(at, &end, 10)) {
        if (pid > 0 && pid != own_child_) waiting.push_back(static_cast<pid_t>(pid));
        at = end;
      }
    }
    if (tasks != nullptr) closedir(tasks);
  }
  if (known) return out;
  // A kernel without CONFIG_PROC_CHILDREN: look at every process.
  DIR* proc = opendir("/proc");
  while (const dirent* entry = proc != nullptr ? readdir(proc) : nullptr) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid > 0 && belongs(pid)) out.push_back(pid);
  }
  if (proc != nullptr) closedir(proc);
  return out;
}

std::vector<std::shared_ptr<Process>> Tracees::sweep() {
  std::vector<std::shared_ptr<Process>> dead;
  const std::lock_guard hold(lock_);
  for (auto at = processes_.begin(); at != processes_.end();) {
    if (has_exited(at->second->pidfd)) {
      dead.push_back(at->second);
      members_.erase(at->first);
      at = processes_.erase(at);
    } else {
      ++at;
    }
  }
  for (auto at = threads_.begin(); at != threads_.end();)
    at = has_exited(at->second->pidfd) ? threads_.erase(at) : std::next(at);
  for (auto at = members_.begin(); at != members_.end();) {
    // Members that never called have no process entry: ask the kernel.
    if (!processes_.contains(at->first) && !read_proc_stat(at->first))
      at = members_.erase(at);
    else
      ++at;
  }
  return dead;
}

std::size_t Tracees::count() {
  const std::lock_guard hold(lock_);
  return processes_.size();
}

} // namespace nd7
