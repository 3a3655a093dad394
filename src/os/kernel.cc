#include "os/kernel.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include <fcntl.h>
#include <linux/filter.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "os/files.h"
#include "os/kernel_abi.h"
#include "os/landlock.h"

namespace nd7::os {
namespace {

std::string small_file(const char* path) {
  auto text = read_file(path, 65536);
  return text ? *text : std::string{};
}

// In a child, so that nothing of it stays: installs a filter that lets everything pass, with a
// listener. Bits of the exit status: 1 installed, 2 sync wake-up, 4 without WAIT_KILLABLE_RECV
// only, 8 EBUSY.
int try_listener() {
  const pid_t child = fork();
  if (child == 0) {
    const sock_filter pass[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
    sock_fprog prog{1, const_cast<sock_filter*>(pass)};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int status = 0;
    long fd =
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &prog);
    if (fd >= 0) {
      status |= 1;
    } else if (errno == EBUSY) {
      _exit(8);
    } else {
      fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
      if (fd < 0) _exit(errno == EBUSY ? 8 : 0);
      status |= 4;
    }
    if (ioctl(static_cast<int>(fd), SECCOMP_IOCTL_NOTIF_SET_FLAGS,
              SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP) == 0)
      status |= 2;
    _exit(status);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 0;
  return WEXITSTATUS(status);
}

// Does a parent get at a child's memory and descriptors here?
void try_access(KernelFacts& facts) {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return;
  static char secret = 'x';
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    (void)!read(ready[0], &byte, 1);
    _exit(0);
  }
  if (child > 0) {
    char copy = 0;
    const iovec local{&copy, 1}, remote{&secret, 1};
    facts.process_vm = process_vm_readv(child, &local, 1, &remote, 1, 0) == 1;
    const Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
    const Fd taken(static_cast<int>(syscall(SYS_pidfd_getfd, pidfd.get(), ready[0], 0)));
    facts.pidfd_getfd = static_cast<bool>(taken);
    (void)!write(ready[1], "g", 1);
    waitpid(child, nullptr, 0);
  }
  close(ready[0]);
  close(ready[1]);
}

} // namespace

KernelFacts kernel_facts(int landlock_abi_max) {
  KernelFacts out;
  utsname name{};
  if (uname(&name) == 0) out.release = name.release;
  out.landlock_abi = os::landlock_abi();
  if (landlock_abi_max > 0 && out.landlock_abi > landlock_abi_max)
    out.landlock_abi = landlock_abi_max;
  const int listener = try_listener();
  out.user_notify = (listener & 5) != 0;
  out.killable_wait = (listener & 1) != 0;
  out.sync_wake_up = (listener & 2) != 0;
  out.listener_taken = listener == 8;
  try_access(out);
  const std::string yama = small_file("/proc/sys/kernel/yama/ptrace_scope");
  if (!yama.empty()) out.yama_scope = std::atoi(yama.c_str());
  out.filtered = small_file("/proc/self/status").find("Seccomp:\t2") != std::string::npos;
  out.user_namespaces = std::atoi(small_file("/proc/sys/user/max_user_namespaces").c_str()) > 0;
  return out;
}

std::vector<Obstacle> obstacles(const KernelFacts& facts, bool root) {
  std::vector<Obstacle> out;
  if (facts.landlock_abi < 2)
    out.push_back({facts.landlock_abi == 0
                       ? "this kernel has no Landlock, or it is switched off"
                       : "Landlock ABI 2 (Linux 5.19) is needed, this kernel has ABI 1",
                   "boot a kernel from 5.19 on with lsm=landlock,... on its command line"});
  if (facts.listener_taken)
    out.push_back({"another program's seccomp listener is on this process already (a session in a "
                   "session, or WSL's or a container's own)",
                   "start nd7 outside of it"});
  else if (!facts.user_notify)
    out.push_back({"seccomp user notifications are not available",
                   "allow seccomp(2) in the container's profile"});
  else if (!facts.killable_wait)
    out.push_back({"seccomp lacks WAIT_KILLABLE_RECV, without which calls run twice under signals",
                   "boot a kernel from 5.19 on"});
  if (!root && facts.yama_scope >= 2)
    out.push_back({fmt::format("Yama's ptrace_scope is {}: a supervisor may not look at its child",
                               facts.yama_scope),
                   "sudo sysctl kernel.yama.ptrace_scope=1"});
  if (!facts.pidfd_getfd)
    out.push_back({"pidfd_getfd is refused here (a container's seccomp profile)",
                   "start the container with --cap-add=SYS_PTRACE or a profile that allows "
                   "pidfd_getfd and process_vm_readv"});
  return out;
}

} // namespace nd7::os
