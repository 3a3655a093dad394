// Calls that reach other processes: signals, limits, priorities. Targets must be of the session.
// The numbers are in registers, so an allowed call may continue; what remains is the reuse of a pid
// between check and use, which Landlock's signal scope closes from ABI 6 on.
#include <csignal>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include "gate/gate.h"
#include "os/remote.h"

namespace nd7 {
namespace {

Answer refuse_process(Context& c, Call& call, std::string_view what, pid_t target, int error) {
  c.recorder.refuse(call.process(), call.name(), what, fmt::format("process {}", target),
                    {Decision::deny, "processes: only those of this session", {}, Judge::none},
                    [&](JsonWriter& body) { body.number("to", target); });
  return Answer::error(error);
}

void record_signal(Context& c, Call& call, pid_t target, int number, int error) {
  JsonWriter body = c.recorder.effect(call.process(), call.name(), error, "observed");
  body.number("to", target).number("number", number);
  c.recorder.append(call.process(), "signal", body);
}

bool exists(pid_t pid) {
  return ::kill(pid, 0) == 0 || errno != ESRCH;
}

// kill() below ABI 6, performed through a pidfd: checked and signalled is the same process.
int signal_one(Context& c, pid_t pid, int number) {
  const Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) return errno;
  if (!c.tracees.belongs(pid)) return EPERM;
  return syscall(SYS_pidfd_send_signal, pidfd.get(), number, nullptr, 0) == 0 ? 0 : errno;
}

// kill with 0, -1 or a group: each process of the session that it means.
Answer signal_many(Context& c, Call& call, pid_t target, int number) {
  pid_t group = -target;
  if (target == 0) {
    auto own = read_proc_stat(call.caller.tgid);
    if (!own) return Answer::error(ESRCH);
    group = own->group;
  }
  bool any = false, foreign = false;
  for (const pid_t pid : c.tracees.all()) {
    auto stat = read_proc_stat(pid);
    if (!stat) continue;
    if (target != -1 && stat->group != group) continue;
    if (target == -1 && pid == call.caller.tgid) continue; // as Linux's kill(-1) does
    if (signal_one(c, pid, number) == 0) any = true;
  }
  if (!any && target != -1) foreign = ::kill(target, 0) == 0 || errno == EPERM;
  record_signal(c, call, target, number, any ? 0 : foreign ? EPERM : ESRCH);
  return any ? Answer::value(0) : Answer::error(foreign ? EPERM : ESRCH);
}

} // namespace

Answer signal_call(Context& c, Worker&, Call& call) {
  switch (call.row->family) {
  case Family::kill: {
    const auto target = static_cast<pid_t>(call.word(0));
    const int number = static_cast<int>(call.word(1));
    if (target <= 0) {
      // Reaches our own front too, which is in the agent's group: never without a scope.
      if (!c.facts.signals_scoped) return signal_many(c, call, target, number);
      if (number != 0) record_signal(c, call, target, number, 0);
      return Answer::go_on();
    }
    if (!exists(target)) return Answer::error(ESRCH);
    if (!c.tracees.belongs(target)) return refuse_process(c, call, "signal", target, EPERM);
    if (!c.facts.signals_scoped) {
      const int error = signal_one(c, target, number);
      record_signal(c, call, target, number, error);
      return error != 0 ? Answer::error(error) : Answer::value(0);
    }
    if (number != 0) record_signal(c, call, target, number, 0);
    return Answer::go_on();
  }
  case Family::tgkill: {
    const auto group = static_cast<pid_t>(call.word(0));
    if (group == call.caller.tgid || c.tracees.belongs(group)) return Answer::go_on();
    if (!exists(group)) return Answer::error(ESRCH);
    return refuse_process(c, call, "signal", group, EPERM);
  }
  case Family::tkill:
  case Family::sigqueue: {
    const auto target = static_cast<pid_t>(call.word(0));
    if (target == call.caller.tid || c.tracees.belongs(target)) return Answer::go_on();
    // A thread id that is no leader: its group decides.
    auto status = read_proc_file(target, "status");
    if (!status) return Answer::error(ESRCH);
    if (c.tracees.belongs(std::atoi(proc_status_field(*status, "Tgid").c_str())))
      return Answer::go_on();
    return refuse_process(c, call, "signal", target, EPERM);
  }
  case Family::pidfd_signal: {
    auto pidfd = os::take_fd(call.caller.pidfd, call.fd(0));
    if (!pidfd) return Answer::error(EBADF);
    auto info = read_proc_file(getpid(), fmt::format("fdinfo/{}", pidfd->get()).c_str());
    const pid_t target = info ? std::atoi(proc_status_field(*info, "Pid").c_str()) : 0;
    if (target > 0 && c.tracees.belongs(target)) return Answer::go_on();
    if (target <= 0) return Answer::error(target == 0 ? EBADF : ESRCH);
    return refuse_process(c, call, "signal", target, EPERM);
  }
  case Family::setown: {
    pid_t target = static_cast<pid_t>(call.word(2));
    if (call.word(1) == F_SETOWN_EX) {
      f_owner_ex owner{};
      if (auto ok = os::read_remote(call.caller.tid, call.arg(2), &owner, sizeof owner); !ok)
        return Answer::error(EFAULT);
      target = owner.pid;
      if (owner.type == F_OWNER_PGRP) target = -target;
    }
    const pid_t checked = target < 0 ? -target : target;
    if (target != 0 && !c.tracees.belongs(checked))
      return refuse_process(c, call, "signal", checked, EPERM);
    auto fd = os::take_fd(call.caller.pidfd, call.fd(0));
    if (!fd) return Answer::error(EBADF);
    // Performed with the number that was checked.
    return Answer::of(fcntl(fd->get(), F_SETOWN, target));
  }
  default:
    return Answer::error(EPERM);
  }
}

Answer foreign_process_call(Context& c, Worker&, Call& call) {
  if (call.row->family == Family::foreign_pid) {
    const auto target = static_cast<pid_t>(call.word(0));
    if (target == 0 || target == call.caller.tgid || target == call.caller.tid)
      return Answer::go_on();
    // Reading another's limits changes nothing.
    if (call.name() == "prlimit64" && call.arg(2) == 0) return Answer::go_on();
    auto status = read_proc_file(target, "status");
    if (!status) return Answer::error(ESRCH);
    const pid_t group = std::atoi(proc_status_field(*status, "Tgid").c_str());
    if (c.tracees.belongs(group)) return Answer::go_on();
    return refuse_process(c, call, "limits of a process", target, EPERM);
  }
  // setpriority and ioprio_set: a process, a group, or all of a user.
  const unsigned which = call.word(0);
  const auto who = static_cast<pid_t>(call.word(1));
  const bool io = call.name() == "ioprio_set";
  const unsigned of_process = io ? 1 : PRIO_PROCESS, of_group = io ? 2 : PRIO_PGRP;
  if (which == of_process) {
    if (who == 0 || who == call.caller.tid) return Answer::go_on();
    auto status = read_proc_file(who, "status");
    if (!status) return Answer::error(ESRCH);
    if (c.tracees.belongs(std::atoi(proc_status_field(*status, "Tgid").c_str())))
      return Answer::go_on();
    return refuse_process(c, call, "priority of a process", who, EPERM);
  }
  // Group and user forms mean processes outside too (front is in the agent's group): each process
  // of the session instead.
  pid_t group = who;
  if (which == of_group && who == 0) {
    auto own = read_proc_stat(call.caller.tgid);
    if (!own) return Answer::error(ESRCH);
    group = own->group;
  }
  bool any = false;
  int error = ESRCH;
  for (const pid_t pid : c.tracees.all()) {
    if (which == of_group) {
      auto stat = read_proc_stat(pid);
      if (!stat || stat->group != group) continue;
    }
    const long result = io ? syscall(SYS_ioprio_set, 1, pid, call.word(2))
                           : syscall(SYS_setpriority, PRIO_PROCESS, pid, call.word(2));
    if (result == 0)
      any = true;
    else
      error = errno;
  }
  return any ? Answer::value(0) : Answer::error(error);
}

} // namespace nd7
