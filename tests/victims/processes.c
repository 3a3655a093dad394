/* Signals, priorities, limits, memory and descriptors of a process outside. */
#define _GNU_SOURCE
#include "victim.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_YOURS "EPERM EACCES ESRCH"

static pid_t outside(void) {
  return (pid_t)fact_number("pid");
}
static const char* came(int number) {
  return format("signal-%d", number);
}

/* --- signals: the outside hears these and lives --------------------------------------------------
 */
static int do_kill(void) {
  return outcome(kill(outside(), SIGURG));
}
static int kill_nothing(void) {
  return outcome(kill(outside(), 0));
}
static int kill_stop(void) { /* SIGCONT to a running process: no harm where it works */
  return outcome(kill(outside(), SIGCONT));
}
static int do_tkill(void) {
  return outcome(syscall(SYS_tkill, outside(), SIGURG));
}
static int do_tgkill(void) {
  return outcome(syscall(SYS_tgkill, outside(), outside(), SIGURG));
}
static siginfo_t queued(void) {
  siginfo_t info = {.si_signo = SIGURG, .si_code = SI_QUEUE};
  info.si_pid = getpid();
  info.si_uid = getuid();
  return info;
}
static int do_sigqueue(void) {
  siginfo_t info = queued();
  return outcome(syscall(SYS_rt_sigqueueinfo, outside(), SIGURG, &info));
}
static int do_tgsigqueue(void) {
  siginfo_t info = queued();
  return outcome(syscall(SYS_rt_tgsigqueueinfo, outside(), outside(), SIGURG, &info));
}
static int do_pidfd_signal(void) {
  const int fd = (int)syscall(SYS_pidfd_open, outside(), 0);
  if (fd < 0) return says_refused(errno);
  return outcome(syscall(SYS_pidfd_send_signal, fd, SIGURG, NULL, 0));
}
static int proc_signal(void) { /* a directory of /proc serves as pidfd */
  const int fd = open(format("/proc/%d", outside()), O_RDONLY | O_DIRECTORY);
  if (fd < 0) return says_refused(errno);
  return outcome(syscall(SYS_pidfd_send_signal, fd, SIGURG, NULL, 0));
}
/* To everybody: the own session may hear it, the outside must not. SIGURG is ignored by default. */
static int kill_all(void) {
  signal(SIGURG, SIG_IGN);
  const long result = kill(-1, SIGURG);
  if (event_came(came(SIGURG))) return worked;
  return result < 0 ? says_refused(errno) : says_refused(EPERM);
}
static int kill_outside_group(void) {
  const pid_t group = getpgid(outside());
  if (group <= 1) return could_not("no group");
  signal(SIGURG, SIG_IGN);
  const long result = kill(-group, SIGURG);
  if (event_came(came(SIGURG))) return worked;
  return result < 0 ? says_refused(errno) : says_refused(EPERM);
}

/* Signals by ownership of a descriptor. */
static int owned(int ex, unsigned long command, int number) {
  int pair[2], on = 1;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return could_not("socketpair");
  signal(SIGIO, SIG_IGN);
  signal(SIGURG, SIG_IGN);
  const struct {
    int type;
    pid_t pid;
  } owner = {1 /* process */, outside()};
  const int target = outside();
  long result;
  if (command != 0)
    result = ioctl(pair[0], command, &target);
  else
    result = ex ? fcntl(pair[0], 15 /* F_SETOWN_EX */, &owner) : fcntl(pair[0], F_SETOWN, target);
  const int error = errno;
  if (number != SIGIO) fcntl(pair[0], 10 /* F_SETSIG */, number);
  ioctl(pair[0], FIOASYNC, &on);
  if (write(pair[1], "x", 1) < 0) {
  }
  if (event_came(came(number))) return worked;
  return says_refused(result < 0 ? error : EPERM);
}
static int set_owner(void) {
  return owned(0, 0, SIGIO);
}
static int set_owner_signal(void) {
  return owned(0, 0, SIGURG);
}
static int set_owner_ex(void) {
  return owned(1, 0, SIGURG);
}
static int set_owner_ioctl(void) {
  return owned(0, 0x8901 /* FIOSETOWN */, SIGIO);
}
static int set_owner_spgrp(void) {
  return owned(0, 0x8902 /* SIOCSPGRP */, SIGIO);
}

/* --- priorities and limits ---------------------------------------------------------------------
 */
static int do_prlimit(void) {
  const struct rlimit limit = {0, 0};
  return outcome(syscall(SYS_prlimit64, outside(), RLIMIT_CORE, &limit, NULL));
}
static int do_setpriority(void) {
  return outcome(setpriority(PRIO_PROCESS, (id_t)outside(), 7));
}
static int setpriority_group(void) {
  setpriority(PRIO_PGRP, (id_t)getpgid(outside()), 7);
  const int error = errno;
  return getpriority(PRIO_PROCESS, (id_t)outside()) == 7 ? worked : says_refused(error);
}
static int setpriority_user(void) { /* every process of the user */
  const long result = setpriority(PRIO_USER, getuid(), 6);
  const int error = errno;
  if (getpriority(PRIO_PROCESS, (id_t)outside()) == 6) return worked;
  return says_refused(result < 0 ? error : EPERM);
}
static int do_setaffinity(void) {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  return outcome(sched_setaffinity(outside(), sizeof set, &set));
}
static int do_setscheduler(void) {
  const struct sched_param param = {0};
  return outcome(sched_setscheduler(outside(), SCHED_BATCH, &param));
}
static int do_setparam(void) {
  const struct sched_param param = {0};
  return outcome(sched_setparam(outside(), &param));
}
static int do_setattr(void) {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t t[3];
  } attr = {.size = 48, .policy = SCHED_BATCH, .nice = 8};
  return outcome(syscall(SYS_sched_setattr, outside(), &attr, 0));
}
static int do_ioprio(void) {
  return outcome(syscall(SYS_ioprio_set, 1, outside(), 2 << 13 | 6));
}
static int ioprio_user(void) {
  const long result = syscall(SYS_ioprio_set, 3 /* user */, getuid(), 2 << 13 | 4);
  const int error = errno;
  if (syscall(SYS_ioprio_get, 1, outside()) == (2 << 13 | 4)) return worked;
  return says_refused(result < 0 ? error : EPERM);
}

/* --- memory and descriptors ------------------------------------------------------------------- */
static int do_seize(void) {
  const long result = ptrace(PTRACE_SEIZE, outside(), NULL, NULL);
  return outcome(result);
}
static int do_attach(void) {
  if (ptrace(PTRACE_ATTACH, outside(), NULL, NULL) != 0) return says_refused(errno);
  waitpid(outside(), NULL, __WALL);
  ptrace(PTRACE_DETACH, outside(), NULL, NULL);
  return worked;
}
static int vm_write(void) {
  struct iovec from = {"X", 1}, to = {(void*)strtoul(fact("buffer"), NULL, 0), 1};
  return outcome(process_vm_writev(outside(), &from, 1, &to, 1, 0));
}
static int vm_read(void) {
  char text[16];
  struct iovec to = {text, sizeof text}, from = {(void*)strtoul(fact("buffer"), NULL, 0), 16};
  return outcome(process_vm_readv(outside(), &to, 1, &from, 1, 0));
}
static int steal_descriptor(void) {
  const int fd = (int)syscall(SYS_pidfd_open, outside(), 0);
  if (fd < 0) return says_refused(errno);
  return outcome(syscall(SYS_pidfd_getfd, fd, fact_number("memfd"), 0));
}
static int do_kcmp(void) {
  return outcome(syscall(SYS_kcmp, getpid(), outside(), 0, 0, fact_number("memfd")));
}
static int do_process_madvise(void) {
  struct iovec range = {(void*)(strtoul(fact("buffer"), NULL, 0) & ~4095UL), 4096};
  const int fd = (int)syscall(SYS_pidfd_open, outside(), 0);
  if (fd < 0) return says_refused(errno);
  return outcome(syscall(SYS_process_madvise, fd, &range, 1, 20 /* cold */, 0));
}

/* --- the supervisor: the parent's parent chain leads to it -------------------------------------
 */
static pid_t supervisor(void) { /* the first ancestor that is called nd7 */
  pid_t pid = getppid();
  for (int depth = 0; depth < 64 && pid > 1; ++depth) {
    char comm[64] = "";
    FILE* file = fopen(format("/proc/%d/stat", pid), "r");
    if (file == NULL) return 0;
    int parent = 0;
    const int got = fscanf(file, "%*d (%63[^)]) %*c %d", comm, &parent);
    fclose(file);
    if (got == 2 && strncmp(comm, "nd7", 3) == 0) return pid;
    pid = parent;
  }
  return 0;
}
static pid_t need_supervisor(void) {
  const pid_t pid = supervisor();
  errno = 0;
  if (pid == 0) exit(could_not("no ancestor is called nd7"));
  return pid;
}
static int supervisor_kill(void) {
  return outcome(kill(need_supervisor(), SIGCONT));
}
static int supervisor_tgkill(void) {
  const pid_t pid = need_supervisor();
  return outcome(syscall(SYS_tgkill, pid, pid, SIGCONT));
}
static int supervisor_seize(void) {
  return outcome(ptrace(PTRACE_SEIZE, need_supervisor(), NULL, NULL));
}
static int supervisor_descriptors(void) {
  const int fd = (int)syscall(SYS_pidfd_open, need_supervisor(), 0);
  for (int i = 0; fd >= 0 && i < 256; ++i)
    if (syscall(SYS_pidfd_getfd, fd, i, 0) >= 0) return worked;
  return says_refused(errno);
}
static int supervisor_fds(void) {
  const pid_t pid = need_supervisor();
  int error = ENOENT;
  for (int i = 0; i < 256; ++i) {
    const int fd = open(format("/proc/%d/fd/%d", pid, i), O_RDONLY | O_NONBLOCK);
    if (fd >= 0) return worked;
    if (errno != ENOENT) error = errno;
  }
  return says_refused(error);
}
static int supervisor_memory(void) {
  return outcome(open(format("/proc/%d/mem", need_supervisor()), O_RDWR));
}
static int supervisor_oom(void) {
  return outcome(open(format("/proc/%d/oom_score_adj", need_supervisor()), O_WRONLY));
}
static int supervisor_starve(void) {
  const pid_t pid = need_supervisor();
  const struct rlimit limit = {16, 16};
  if (syscall(SYS_prlimit64, pid, RLIMIT_NOFILE, &limit, NULL) == 0) return worked;
  if (setpriority(PRIO_PROCESS, (id_t)pid, 19) == 0) return worked;
  const struct sched_param param = {0};
  if (sched_setscheduler(pid, SCHED_IDLE, &param) == 0) return worked;
  if (syscall(SYS_ioprio_set, 1, pid, 3 << 13) == 0) return worked;
  return says_refused(errno);
}
/* The filter itself: natively there is none. */
static int lose_filter(void) {
  const int fd = open("/proc/self/status", O_RDONLY);
  char text[4096] = "";
  if (fd < 0 || read(fd, text, sizeof text - 1) <= 0) return could_not("/proc/self/status");
  const char* line = strstr(text, "Seccomp:");
  return line != NULL && atoi(line + 8) == 2 ? says_refused(EPERM) : worked;
}

const struct victim process_victims[] = {
    {"kill", "kill", NOT_YOURS, by_gate, do_kill},
    {"kill-0", "kill", NOT_YOURS, by_gate, kill_nothing},
    {"kill-cont", "kill", NOT_YOURS, by_gate, kill_stop},
    {"tkill", "tkill", NOT_YOURS, 0, do_tkill},
    {"tgkill", "tgkill", NOT_YOURS, 0, do_tgkill},
    {"sigqueue", "rt_sigqueueinfo", NOT_YOURS, 0, do_sigqueue},
    {"tgsigqueue", "rt_tgsigqueueinfo", NOT_YOURS, 0, do_tgsigqueue},
    {"pidfd-signal", "pidfd_send_signal", NOT_YOURS, 0, do_pidfd_signal},
    {"proc-signal", "pidfd_send_signal", NOT_YOURS, 0, proc_signal},
    {"kill-all", "kill", NOT_YOURS, needs_user | quiet, kill_all},
    {"kill-group", "kill", NOT_YOURS, quiet, kill_outside_group},
    {"set-owner", "fcntl", NOT_YOURS, quiet, set_owner},
    {"set-owner-signal", "fcntl", NOT_YOURS, quiet, set_owner_signal},
    {"set-owner-ex", "fcntl", NOT_YOURS, quiet, set_owner_ex},
    {"set-owner-ioctl", "ioctl", NOT_YOURS, quiet, set_owner_ioctl},
    {"set-owner-spgrp", "ioctl", NOT_YOURS, quiet, set_owner_spgrp},
    {"prlimit", "prlimit64", NOT_YOURS, by_gate, do_prlimit},
    {"setpriority", "setpriority", NOT_YOURS, by_gate, do_setpriority},
    {"setpriority-group", "setpriority", NOT_YOURS, quiet, setpriority_group},
    {"setpriority-user", "setpriority", NOT_YOURS, needs_user | quiet, setpriority_user},
    {"setaffinity", "sched_setaffinity", NOT_YOURS, by_gate, do_setaffinity},
    {"setscheduler", "sched_setscheduler", NOT_YOURS, by_gate, do_setscheduler},
    {"setparam", "sched_setparam", NOT_YOURS, by_gate, do_setparam},
    {"setattr", "sched_setattr", NOT_YOURS, by_gate, do_setattr},
    {"ioprio", "ioprio_set", NOT_YOURS, by_gate, do_ioprio},
    {"ioprio-user", "ioprio_set", NOT_YOURS, needs_user | quiet, ioprio_user},
    {"ptrace-seize", "ptrace", NOT_YOURS, by_filter, do_seize},
    {"ptrace-attach", "ptrace", NOT_YOURS, by_filter, do_attach},
    {"vm-write", "process_vm_writev", NOT_YOURS, by_filter, vm_write},
    {"vm-read", "process_vm_readv", NOT_YOURS, by_filter, vm_read},
    {"steal-descriptor", "pidfd_getfd", NOT_YOURS, by_filter, steal_descriptor},
    {"kcmp", "kcmp", NOT_YOURS, by_filter, do_kcmp},
    {"process-madvise", "process_madvise", NOT_YOURS, by_filter | not_native, do_process_madvise},
    {"supervisor-kill", "kill", NOT_YOURS, by_gate | not_native, supervisor_kill},
    {"supervisor-tgkill", "tgkill", NOT_YOURS, not_native, supervisor_tgkill},
    {"supervisor-seize", "ptrace", NOT_YOURS, by_filter | not_native, supervisor_seize},
    {"supervisor-descriptors", "pidfd_getfd", NOT_YOURS, by_filter | not_native,
     supervisor_descriptors},
    {"supervisor-fds", "openat", NOT_YOURS, by_gate | not_native, supervisor_fds},
    {"supervisor-memory", "openat", NOT_YOURS, by_gate | not_native, supervisor_memory},
    {"supervisor-oom", "openat", NOT_YOURS, by_gate | not_native, supervisor_oom},
    {"supervisor-starve", "prlimit64 setpriority sched_setscheduler ioprio_set", NOT_YOURS,
     by_gate | not_native, supervisor_starve},
    {"filter-is-on", "", "EPERM", by_filter, lose_filter},
    {0},
};
