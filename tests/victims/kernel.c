/* Calls that have no use inside: refused by number or by their arguments in registers. Those that
 * natively only an administrator may do, or that would do harm, are called with arguments that the
 * kernel rejects in another way: then the error tells whether the call was reached. */
#define _GNU_SOURCE
#include "victim.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/landlock.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NO_ADDRESS ((void*)8)
#define DENIED "EPERM EACCES"

static int io_uring(void) {
  struct io_uring_params p = {0};
  return outcome(syscall(SYS_io_uring_setup, 4, &p));
}
static int io_uring_enter_call(void) {
  return probe(syscall(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0), "ENOSYS");
}
static int io_uring_register_call(void) {
  return probe(syscall(SYS_io_uring_register, -1, 0, NULL, 0), "ENOSYS");
}

/* clone3 in the shape of fork: what it asks for lies in memory. */
static int clone3_fork(void) {
  struct {
    uint64_t v[11];
  } args = {{0}};
  args.v[4] = SIGCHLD;
  const long pid = syscall(SYS_clone3, &args, sizeof args);
  if (pid == 0) _exit(0);
  if (pid > 0) waitpid((pid_t)pid, NULL, 0);
  return outcome(pid);
}
static int clone_with(unsigned long flags) {
  const long pid = syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, 0);
  if (pid == 0) _exit(0);
  if (pid > 0) waitpid((pid_t)pid, NULL, 0);
  return outcome(pid);
}
static int clone_user(void) {
  return clone_with(CLONE_NEWUSER);
}
static int clone_user_net(void) {
  return clone_with(CLONE_NEWUSER | CLONE_NEWNET);
}
static int clone_mount(void) {
  return clone_with(CLONE_NEWNS);
}
static int unshare_user(void) {
  return outcome(syscall(SYS_unshare, CLONE_NEWUSER));
}
static int unshare_user_mount(void) {
  return outcome(syscall(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNS));
}
static int unshare_net(void) {
  return outcome(syscall(SYS_unshare, CLONE_NEWNET));
}
static int unshare_time(void) {
  return outcome(syscall(SYS_unshare, 0x80));
}
static int unshare_ipc(void) {
  return outcome(syscall(SYS_unshare, CLONE_NEWIPC));
}
static int setns_own(void) {
  const int fd = open("/proc/self/ns/mnt", O_RDONLY);
  if (fd < 0) return outcome(fd);
  return probe(syscall(SYS_setns, fd, CLONE_NEWNS), DENIED);
}
static int setns_outside(void) {
  const int fd = (int)syscall(SYS_pidfd_open, fact_number("pid"), 0);
  if (fd < 0) return could_not("pidfd_open");
  return probe(syscall(SYS_setns, fd, CLONE_NEWNET), DENIED);
}
static int setns_no_descriptor(void) {
  return probe(syscall(SYS_setns, -1, 0), DENIED);
}

static int do_chroot(void) {
  return outcome(chroot("."));
}
static int do_pivot_root(void) {
  return probe(syscall(SYS_pivot_root, ".", "."), DENIED);
}
static int do_mount(void) {
  mkdir("m", 0755);
  const long result = mount("none", "m", "tmpfs", 0, NULL);
  if (result == 0) umount2("m", MNT_DETACH);
  return outcome(result);
}
static int do_bind_mount(void) {
  mkdir("m", 0755);
  const long result = mount(world, "m", NULL, MS_BIND, NULL);
  if (result == 0) umount2("m", MNT_DETACH);
  return outcome(result);
}
static int do_umount(void) {
  return probe(umount2(".", MNT_DETACH), DENIED);
}
static int do_fsopen(void) {
  return outcome(syscall(SYS_fsopen, "tmpfs", 0));
}
static int do_fsconfig(void) {
  return probe(syscall(SYS_fsconfig, -1, 99, NULL, NULL, 0), DENIED);
}
static int do_fsmount(void) {
  return probe(syscall(SYS_fsmount, -1, 0, 0), DENIED);
}
static int do_fspick(void) {
  return probe(syscall(SYS_fspick, -1, NO_ADDRESS, 0), DENIED);
}
static int do_move_mount(void) {
  return probe(syscall(SYS_move_mount, -1, NO_ADDRESS, -1, NO_ADDRESS, 0), DENIED);
}
static int do_open_tree(void) {
  return outcome(syscall(SYS_open_tree, AT_FDCWD, ".", 1));
}
static int open_tree_plain(void) {
  return outcome(syscall(SYS_open_tree, AT_FDCWD, ".", 0));
}
static int do_open_tree_attr(void) {
  return probe(syscall(467, AT_FDCWD, NO_ADDRESS, 1, NULL, 0), DENIED " ENOSYS");
}
static int do_mount_setattr(void) {
  return probe(syscall(SYS_mount_setattr, -1, NO_ADDRESS, 0, NULL, 0), DENIED);
}

static int do_add_key(void) {
  return outcome(syscall(SYS_add_key, "user", "nd7-victim", "x", 1UL, -3 /* session */));
}
static int do_request_key(void) {
  return probe(syscall(SYS_request_key, "user", "nd7-victim-none", NULL, -3), "ENOSYS");
}
static int do_keyctl(void) {
  return outcome(syscall(SYS_keyctl, 0 /* get id */, -3, 1));
}

static int do_bpf(void) {
  struct {
    uint32_t v[32];
  } attr = {{1 /* hash */, 4, 4, 1}};
  /* Where ordinary users may not: a command that does not exist, known by EINVAL. */
  return geteuid() == 0 ? outcome(syscall(SYS_bpf, 0, &attr, 72))
                        : probe(syscall(SYS_bpf, 0, &attr, 72), DENIED);
}
static int do_perf(void) {
  struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                 .size = sizeof attr,
                                 .config = PERF_COUNT_SW_TASK_CLOCK,
                                 .exclude_kernel = 1,
                                 .exclude_hv = 1};
  return probe(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0UL), DENIED);
}
static int perf_bad_size(void) {
  struct perf_event_attr attr = {.size = 1};
  return probe(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0UL), DENIED);
}
static int do_userfaultfd(void) {
  return probe(syscall(SYS_userfaultfd, 1 /* user mode only */ | O_CLOEXEC), DENIED);
}
static int do_open_by_handle(void) {
  struct {
    struct file_handle handle;
    char bytes[128];
  } h = {.handle.handle_bytes = 128};
  int mount_id = 0;
  if (name_to_handle_at(AT_FDCWD, fact("secret"), &h.handle, &mount_id, 0) != 0 && errno != EACCES)
    return could_not("name_to_handle_at");
  const int fd = open("/", O_RDONLY | O_DIRECTORY);
  return outcome(open_by_handle_at(fd, &h.handle, O_RDONLY));
}
static int do_fanotify(void) {
  return outcome(syscall(SYS_fanotify_init, 0x200 /* FID */, O_RDONLY));
}
static int do_memfd_secret(void) {
  return probe(syscall(SYS_memfd_secret, 0), "ENOSYS");
}
static int do_openat2(void) {
  const struct { uint64_t flags, mode, resolve; } how = {O_RDONLY, 0, 0};
  return outcome(syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof how));
}
static int openat2_write(void) {
  const struct { uint64_t flags, mode, resolve; } how = {O_WRONLY, 0, 0};
  return outcome(syscall(SYS_openat2, AT_FDCWD, in_world("canary.txt"), &how, sizeof how));
}
static int do_setxattrat(void) {
  const struct {
    const char* value;
    uint32_t size, flags;
  } args = {"1", 1, 0};
  return outcome(
      syscall(463, AT_FDCWD, in_world("canary.txt"), 0, "user.victim", &args, sizeof args));
}
static int do_removexattrat(void) {
  return outcome(syscall(466, AT_FDCWD, in_world("canary.txt"), 0, "user.present"));
}
static int do_file_setattr(void) {
  const struct {
    uint64_t xflags;
    uint32_t v[4];
  } attr = {0x80 /* nodump */, {0}};
  return outcome(syscall(469, AT_FDCWD, in_world("canary.txt"), &attr, sizeof attr, 0));
}

/* The first number this kernel does not know: here it stands for all that are newer than nd7. */
static int unknown_number(void) {
  return probe(syscall(9999), "ENOSYS");
}

static int foreign_abi(void) {
#ifdef __x86_64__
  long result;
  /* getpid of i386 */
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
  if (result > 0) return worked;
  return says_refused((int)-result);
#else
  errno = 0;
  return could_not("x86 only");
#endif
}
static int foreign_abi_open(void) {
#ifdef __x86_64__
  static char* low;
  if (low == NULL) {
    low = (char*)syscall(SYS_mmap, NULL, 4096UL, 3, 0x22 | 0x40 /* below 2 GB */, -1, 0);
    if ((long)low < 0 || (unsigned long)low > 0xffffffffUL) return could_not("low memory");
  }
  snprintf(low, 4096, "%s", in_world("canary.txt"));
  long result;
  __asm__ volatile("int $0x80" /* open of i386 */
                   : "=a"(result)
                   : "a"(5L), "b"((long)low), "c"((long)O_WRONLY)
                   : "memory", "r8", "r9", "r10", "r11");
  if (result > 0) return worked;
  return says_refused((int)-result);
#else
  errno = 0;
  return could_not("x86 only");
#endif
}
static int x32(void) {
#ifdef __x86_64__
  return probe(syscall(0x40000000L | SYS_getpid), "ENOSYS EPERM");
#else
  errno = 0;
  return could_not("x86 only");
#endif
}
static int x32_open(void) {
#ifdef __x86_64__
  return probe(syscall(0x40000000L | SYS_open, in_world("canary.txt"), O_WRONLY), "ENOSYS EPERM");
#else
  errno = 0;
  return could_not("x86 only");
#endif
}

static int inner_landlock(void) {
  const struct { uint64_t fs; } attr = {1ULL << 1 /* write file */};
  const int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
  if (fd < 0) return could_not("landlock_create_ruleset");
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return outcome(syscall(SYS_landlock_restrict_self, fd, 0));
}
static int second_listener(void) {
  struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const struct sock_fprog program = {1, allow};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return outcome(
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
}
static int not_dumpable(void) {
  /* Answered with success and not done: it would blind an unprivileged supervisor. */
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return says_refused(errno);
  return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 ? worked : says_refused(EPERM);
}
static int new_privileges(void) {
  return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 ? worked : says_refused(EPERM);
}
static int capabilities(void) {
  FILE* file = fopen("/proc/self/status", "r");
  char line[256];
  unsigned long long bounding = 0, effective = 0, permitted = 0;
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    sscanf(line, "CapBnd: %llx", &bounding);
    sscanf(line, "CapEff: %llx", &effective);
    sscanf(line, "CapPrm: %llx", &permitted);
  }
  /* CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID. An ordinary user cannot narrow the
   * bounding set; without new privileges it gives nothing. */
  const unsigned long long held = effective | permitted | (geteuid() == 0 ? bounding : 0);
  return (held & ~0x1fULL) != 0 ? worked : says_refused(EPERM);
}

/* Administration, with arguments that do nothing. */
static int do_acct(void) {
  return probe(syscall(SYS_acct, NO_ADDRESS), "EPERM");
}
static int do_swapon(void) {
  return probe(syscall(SYS_swapon, NO_ADDRESS, 0), "EPERM");
}
static int do_swapoff(void) {
  return probe(syscall(SYS_swapoff, NO_ADDRESS), "EPERM");
}
static int do_reboot(void) {
  return probe(syscall(SYS_reboot, 0, 0, 0, NULL), "EPERM");
}
static int do_sethostname(void) {
  return probe(syscall(SYS_sethostname, NO_ADDRESS, -1), "EPERM");
}
static int do_setdomainname(void) {
  return probe(syscall(SYS_setdomainname, NO_ADDRESS, -1), "EPERM");
}
static int do_init_module(void) {
  return probe(syscall(SYS_init_module, NO_ADDRESS, 1UL, NO_ADDRESS), "EPERM");
}
static int do_finit_module(void) {
  return probe(syscall(SYS_finit_module, -1, NO_ADDRESS, 0), "EPERM");
}
static int do_delete_module(void) {
  return probe(syscall(SYS_delete_module, NO_ADDRESS, 0), "EPERM");
}
static int do_kexec_load(void) {
  return probe(syscall(SYS_kexec_load, 0UL, 17UL, NO_ADDRESS, 0UL), "EPERM");
}
static int do_kexec_file_load(void) {
  return probe(syscall(SYS_kexec_file_load, -1, -1, 0UL, NO_ADDRESS, ~0UL), "EPERM");
}
static int do_quotactl(void) {
  return probe(syscall(SYS_quotactl, 0, NO_ADDRESS, 0, NULL), "EPERM");
}
static int do_quotactl_fd(void) {
  return probe(syscall(SYS_quotactl_fd, -1, 0, 0, NULL), "EPERM");
}
static int do_settimeofday(void) {
  return probe(syscall(SYS_settimeofday, NO_ADDRESS, NULL), "EPERM");
}
static int do_clock_settime(void) {
  return probe(syscall(SYS_clock_settime, 9999, NO_ADDRESS), "EPERM");
}
static int do_adjtimex(void) {
  struct timex t = {.modes = ADJ_TICK, .tick = 1 /* out of range */};
  return probe(syscall(SYS_adjtimex, &t), "EPERM");
}
static int do_clock_adjtime(void) {
  struct timex t = {.modes = ADJ_TICK, .tick = 1};
  return probe(syscall(SYS_clock_adjtime, CLOCK_REALTIME, &t), "EPERM");
}
static int do_syslog(void) {
  return probe(syscall(SYS_syslog, 10 /* size */, NULL, 0), "EPERM");
}
static int do_capset(void) {
  const struct {
    uint32_t version;
    int pid;
  } header = {0x20080522, 0};
  const struct { uint32_t v[6]; } all = {{~0U, ~0U, ~0U, ~0U, ~0U, ~0U}};
  struct {
    uint32_t v[6];
  } mine;
  if (syscall(SYS_capget, &header, &mine) != 0) return could_not("capget");
  if (mine.v[0] >> 21 & 1) return worked; /* CAP_SYS_ADMIN is there already */
  return outcome(syscall(SYS_capset, &header, &all));
}
static int do_nfsservctl(void) {
  return probe(syscall(SYS_nfsservctl, 0, 0, 0), "ENOSYS");
}
static int do_lookup_dcookie(void) {
  return probe(syscall(SYS_lookup_dcookie, 0, 0, 0), "EPERM");
}
static int do_move_pages(void) {
  return probe(syscall(SYS_move_pages, 0, 1UL, NO_ADDRESS, NO_ADDRESS, NO_ADDRESS, 0), "EPERM");
}
static int do_migrate_pages(void) {
  return probe(syscall(SYS_migrate_pages, 0, -1UL, NO_ADDRESS, NO_ADDRESS), "EPERM");
}
static int do_process_mrelease(void) {
  return probe(syscall(SYS_process_mrelease, -1, 0), "EPERM");
}
#ifdef __x86_64__
static int do_iopl(void) {
  return probe(syscall(SYS_iopl, 99), "EPERM");
}
static int do_ioperm(void) {
  return probe(syscall(SYS_ioperm, ~0UL, 2UL, 1), "EPERM");
}
static int do_modify_ldt(void) {
  char entry[16];
  return probe(syscall(SYS_modify_ldt, 0, entry, sizeof entry), "ENOSYS");
}
#endif

const struct victim kernel_victims[] = {
    {"io-uring", "io_uring_setup", "ENOSYS", by_filter, io_uring},
    {"io-uring-enter", "io_uring_enter", "ENOSYS", by_filter, io_uring_enter_call},
    {"io-uring-register", "io_uring_register", "ENOSYS", by_filter, io_uring_register_call},
    {"clone3", "clone3", "ENOSYS", by_filter, clone3_fork},
    {"clone-user", "clone", DENIED, by_filter, clone_user},
    {"clone-user-net", "clone", DENIED, by_filter, clone_user_net},
    {"clone-mount", "clone", DENIED, by_filter | needs_root, clone_mount},
    {"unshare-user", "unshare", DENIED, by_filter, unshare_user},
    {"unshare-user-mount", "unshare", DENIED, by_filter, unshare_user_mount},
    {"unshare-net", "unshare", DENIED, by_filter | needs_root, unshare_net},
    {"unshare-time", "unshare", DENIED, by_filter | needs_root, unshare_time},
    {"unshare-ipc", "unshare", DENIED, by_filter | needs_root, unshare_ipc},
    {"setns-own", "setns", DENIED, by_filter | needs_root, setns_own},
    {"setns-outside", "setns", DENIED, by_filter | needs_root, setns_outside},
    {"setns-nothing", "setns", DENIED, by_filter, setns_no_descriptor},
    {"chroot", "chroot", DENIED, by_filter | needs_root, do_chroot},
    {"pivot-root", "pivot_root", DENIED, by_filter | needs_root, do_pivot_root},
    {"mount", "mount", DENIED, by_filter | needs_root, do_mount},
    {"mount-bind", "mount", DENIED, by_filter | needs_root, do_bind_mount},
    {"umount", "umount2", DENIED, by_filter | needs_root, do_umount},
    {"fsopen", "fsopen", DENIED, by_filter | needs_root, do_fsopen},
    {"fsconfig", "fsconfig", DENIED, by_filter, do_fsconfig},
    {"fsmount", "fsmount", DENIED, by_filter | needs_root, do_fsmount},
    {"fspick", "fspick", DENIED, by_filter | needs_root, do_fspick},
    {"move-mount", "move_mount", DENIED, by_filter | needs_root, do_move_mount},
    {"open-tree-clone", "open_tree", DENIED, by_filter | needs_root, do_open_tree},
    {"open-tree", "open_tree", DENIED, by_filter, open_tree_plain},
    {"open-tree-attr", "open_tree_attr", DENIED " ENOSYS", by_filter | needs_root,
     do_open_tree_attr},
    {"mount-setattr", "mount_setattr", DENIED, by_filter | needs_root, do_mount_setattr},
    {"add-key", "add_key", "ENOSYS", by_filter, do_add_key},
    {"request-key", "request_key", "ENOSYS", by_filter, do_request_key},
    {"keyctl", "keyctl", "ENOSYS", by_filter, do_keyctl},
    {"bpf", "bpf", DENIED, by_filter | needs_root, do_bpf},
    {"perf", "perf_event_open", DENIED, by_filter | needs_root, do_perf},
    {"perf-arguments", "perf_event_open", DENIED, by_filter, perf_bad_size},
    {"userfaultfd", "userfaultfd", DENIED, by_filter, do_userfaultfd},
    {"open-by-handle", "open_by_handle_at", DENIED, by_filter | needs_root | of_secrets,
     do_open_by_handle},
    {"fanotify", "fanotify_init", DENIED, by_filter, do_fanotify},
    {"memfd-secret", "memfd_secret", "ENOSYS", by_filter | not_native, do_memfd_secret},
    {"openat2", "openat2", "ENOSYS", by_filter, do_openat2},
    {"openat2-write", "openat2", "ENOSYS", by_filter, openat2_write},
    {"setxattrat", "setxattrat", "ENOSYS", by_filter, do_setxattrat},
    {"removexattrat", "removexattrat", "ENOSYS", by_filter, do_removexattrat},
    {"file-setattr", "file_setattr", "ENOSYS", by_filter, do_file_setattr},
    {"unknown-number", "", "ENOSYS", by_filter | not_native, unknown_number},
    {"foreign-abi", "", "ENOSYS EPERM", by_filter, foreign_abi},
    {"foreign-abi-open", "", "ENOSYS EPERM", by_filter, foreign_abi_open},
    {"x32", "", "ENOSYS EPERM", by_filter | not_native, x32},
    {"x32-open", "", "ENOSYS EPERM", by_filter | not_native, x32_open},
    {"inner-landlock", "landlock_restrict_self", "EOPNOTSUPP", by_gate, inner_landlock},
    {"second-listener", "seccomp", "EBUSY", by_filter, second_listener},
    {"not-dumpable", "prctl", "EPERM", by_filter | quiet, not_dumpable},
    {"new-privileges", "prctl", "EPERM", by_filter, new_privileges},
    {"capabilities", "", "EPERM", by_filter | needs_root, capabilities},
    {"capset", "capset", "EPERM", needs_root, do_capset},
    {"acct", "acct", "EPERM", by_filter | needs_root, do_acct},
    {"swapon", "swapon", "EPERM", by_filter | needs_root, do_swapon},
    {"swapoff", "swapoff", "EPERM", by_filter | needs_root, do_swapoff},
    {"reboot", "reboot", "EPERM", by_filter | needs_root, do_reboot},
    {"sethostname", "sethostname", "EPERM", by_filter | needs_root, do_sethostname},
    {"setdomainname", "setdomainname", "EPERM", by_filter | needs_root, do_setdomainname},
    {"init-module", "init_module", "EPERM", by_filter | needs_root, do_init_module},
    {"finit-module", "finit_module", "EPERM", by_filter | needs_root, do_finit_module},
    {"delete-module", "delete_module", "EPERM", by_filter | needs_root, do_delete_module},
    {"kexec-load", "kexec_load", "EPERM", by_filter | needs_root, do_kexec_load},
    {"kexec-file-load", "kexec_file_load", "EPERM", by_filter | needs_root, do_kexec_file_load},
    {"quotactl", "quotactl", "EPERM", by_filter, do_quotactl},
    {"quotactl-fd", "quotactl_fd", "EPERM", by_filter, do_quotactl_fd},
    {"settimeofday", "settimeofday", "EPERM", by_filter, do_settimeofday},
    {"clock-settime", "clock_settime", "EPERM", by_filter, do_clock_settime},
    {"adjtimex", "adjtimex", "EPERM", by_filter | needs_root, do_adjtimex},
    {"clock-adjtime", "clock_adjtime", "EPERM", by_filter | needs_root, do_clock_adjtime},
    {"syslog", "syslog", "EPERM", by_filter | needs_root, do_syslog},
    {"nfsservctl", "nfsservctl", "ENOSYS", by_filter | not_native, do_nfsservctl},
    {"lookup-dcookie", "lookup_dcookie", "EPERM", by_filter, do_lookup_dcookie},
    {"move-pages", "move_pages", "EPERM", by_filter, do_move_pages},
    {"migrate-pages", "migrate_pages", "EPERM", by_filter, do_migrate_pages},
    {"process-mrelease", "process_mrelease", "EPERM", by_filter, do_process_mrelease},
#ifdef __x86_64__
    {"iopl", "iopl", "EPERM", by_filter, do_iopl},
    {"ioperm", "ioperm", "EPERM", by_filter, do_ioperm},
    {"modify-ldt", "modify_ldt", "ENOSYS", by_filter, do_modify_ldt},
#endif
    {0},
};
