/* Ways through /proc and /dev to what belongs to others: descriptors, roots, memory, environment,
 * the kernel's knobs, devices. */
#define _GNU_SOURCE
#include "victim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CLOSED "EACCES EPERM"

static const char* outside(const char* rest) {
  return format("/proc/%s/%s", fact("pid"), rest);
}

static int reads(const char* path) {
  char byte;
  const int fd = open(path, O_RDONLY | O_NONBLOCK);
  if (fd < 0) return says_refused(errno);
  return outcome(read(fd, &byte, 1));
}
static int writes(const char* path) {
  return outcome(open(path, O_WRONLY | O_NONBLOCK));
}

/* A file of the system that this machine may lack. */
static int system_file(const char* name, int flags) {
  if (access(name, F_OK) != 0 && errno == ENOENT) {
    errno = 0;
    return could_not("not on this machine");
  }
  return outcome(open(name, flags | O_NONBLOCK | O_NOCTTY));
}

static int fd_memory(void) {
  return reads(outside(format("fd/%s", fact("memfd"))));
}
static int fd_pipe(void) {
  return reads(outside(format("fd/%s", fact("pipe"))));
}
static int fd_file(void) {
  return reads(outside(format("fd/%s", fact("file"))));
}
static int fd_file_write(void) {
  return writes(outside(format("fd/%s", fact("file"))));
}
static int fd_task(void) {
  return reads(format("/proc/%s/task/%s/fd/%s", fact("pid"), fact("pid"), fact("memfd")));
}
static int fd_link(void) { /* the link leads to the directory of its descriptors */
  if (symlink(outside("fd"), "fds") != 0) return could_not("symlink");
  return reads(format("fds/%s", fact("memfd")));
}
static int fd_final_link(void) {
  if (symlink(outside(format("fd/%s", fact("memfd"))), "m") != 0) return could_not("symlink");
  return reads("m");
}
static int fd_dirfd(void) {
  const int fd = open(outside("fd"), O_PATH | O_DIRECTORY);
  if (fd < 0) return says_refused(errno);
  char byte;
  const int memory = openat(fd, fact("memfd"), O_RDONLY);
  return memory < 0 ? says_refused(errno) : outcome(read(memory, &byte, 1));
}
static int fd_chdir(void) {
  if (chdir(outside("")) != 0) return says_refused(errno);
  return reads(format("fd/%s", fact("memfd")));
}
static int fd_dot_dot(void) { /* self, then up and over to the other */
  return reads(format("/proc/self/../%s/fd/%s", fact("pid"), fact("memfd")));
}
/* Through a link to /proc/self: who opens it on behalf of the caller must not open its own. The
 * numbers that the caller has not open must give ENOENT, whatever the spelling. */
static int others_descriptors(const char* directory) {
  for (int i = 3; i < 512; ++i) {
    struct stat st;
    if (fstat(i, &st) == 0) continue;
    const int fd = open(format("%s/%d", directory, i), O_RDONLY | O_NONBLOCK);
    if (fd >= 0) return worked;
    if (errno != ENOENT) return says_refused(errno);
  }
  return says_refused(ENOENT);
}
static int self_link(void) {
  if (symlink("/proc/self/fd", "fds") != 0) return could_not("symlink");
  return others_descriptors("fds");
}
static int self_links(void) {
  if (symlink("/proc/self", "me") != 0 || symlink("me/fd", "fds") != 0) return could_not("symlink");
  return others_descriptors("fds");
}
static int thread_self_link(void) {
  if (symlink("/proc/thread-self/fd", "fds") != 0) return could_not("symlink");
  return others_descriptors("fds");
}
static int self_plain(void) {
  return others_descriptors("/proc/self/fd");
}
static int dev_fd_plain(void) {
  return others_descriptors("/dev/fd");
}
/* What the caller has open must be the caller's: a wrong file there is somebody else's. */
static int self_is_self(const char* path) {
  char text[64] = "";
  const int fd = open(path, O_RDONLY);
  if (fd < 0) return says_refused(errno);
  const ssize_t n = read(fd, text, sizeof text - 1);
  if (n <= 0) return says_refused(errno);
  return atoi(text) == getpid() ? says_refused(ENOENT) : worked;
}
static int self_stat_link(void) {
  if (symlink("/proc/self", "me") != 0) return could_not("symlink");
  return self_is_self("me/stat");
}
static int self_stat_dirfd(void) {
  if (chdir("/proc") != 0) return could_not("chdir");
  return self_is_self("self/stat");
}

static int root_read(void) {
  return reads(outside(format("root%s", fact("secret"))));
}
static int root_write(void) {
  return writes(outside(format("root%s", in_world("canary.txt"))));
}
static int cwd_write(void) {
  return writes(outside("cwd/canary.txt"));
}
static int environment(void) {
  return reads(outside("environ"));
}
static int memory_read(void) {
  return outcome(open(outside("mem"), O_RDONLY));
}
static int memory_write(void) {
  return outcome(open(outside("mem"), O_RDWR));
}
static int maps(void) {
  return reads(outside("maps"));
}
static int smaps(void) {
  return reads(outside("smaps"));
}
static int pagemap(void) {
  return outcome(open(outside("pagemap"), O_RDONLY));
}
static int auxv(void) {
  return reads(outside("auxv"));
}
static int oom_score(void) {
  return writes(outside("oom_score_adj"));
}
static int comm_write(void) {
  return writes(outside("comm"));
}
static int coredump_filter(void) {
  return writes(outside("coredump_filter"));
}
static int clear_refs(void) {
  return writes(outside("clear_refs"));
}
static int attr_write(void) {
  return writes("/proc/self/attr/current");
}
static int uid_map(void) {
  return writes("/proc/self/uid_map");
}
static int core_pattern(void) {
  return system_file("/proc/sys/kernel/core_pattern", O_WRONLY);
}
static int sysrq(void) {
  return system_file("/proc/sysrq-trigger", O_WRONLY);
}
static int hostname_knob(void) {
  return system_file("/proc/sys/kernel/hostname", O_WRONLY);
}
static int sysfs_write(void) {
  return system_file("/sys/kernel/mm/transparent_hugepage/enabled", O_WRONLY);
}
static int cgroup_write(void) {
  return system_file("/sys/fs/cgroup/cgroup.procs", O_WRONLY);
}
static int namespace_open(void) {
  return outcome(open(outside("ns/net"), O_RDONLY));
}

static int kmsg_read(void) {
  return system_file("/dev/kmsg", O_RDONLY);
}
static int kmsg_write(void) {
  return system_file("/dev/kmsg", O_WRONLY);
}
static int memory_device(void) {
  return system_file("/dev/mem", O_RDONLY);
}
static int disk(void) {
  const char* const disks[] = {"/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/xvda", "/dev/root"};
  for (size_t i = 0; i < sizeof disks / sizeof *disks; ++i)
    if (access(disks[i], F_OK) == 0) return outcome(open(disks[i], O_RDONLY));
  errno = 0;
  return could_not("no disk here");
}
static int make_device(void) { /* the node of a disk or of memory, made in the project */
  if (mknod("mem", S_IFCHR | 0600, 1 << 8 | 1) != 0) return says_refused(errno);
  return outcome(open("mem", O_RDONLY));
}
static int kernel_core(void) {
  return system_file("/proc/kcore", O_RDONLY);
}
static int fuse_device(void) {
  return system_file("/dev/fuse", O_RDWR);
}

const struct victim procfs_victims[] = {
    {"proc-fd-memory", "openat", CLOSED, by_gate, fd_memory},
    {"proc-fd-pipe", "openat", CLOSED, by_gate, fd_pipe},
    {"proc-fd-file", "openat", CLOSED, by_gate, fd_file},
    {"proc-fd-file-write", "openat", CLOSED, by_gate, fd_file_write},
    {"proc-fd-task", "openat", CLOSED, by_gate, fd_task},
    {"proc-fd-link", "openat", CLOSED, by_gate, fd_link},
    {"proc-fd-final-link", "openat", CLOSED, by_gate, fd_final_link},
    {"proc-fd-dirfd", "openat", CLOSED, by_gate, fd_dirfd},
    {"proc-fd-chdir", "openat", CLOSED, by_gate, fd_chdir},
    {"proc-fd-dotdot", "openat", CLOSED, by_gate, fd_dot_dot},
    {"self-link", "openat", "ENOENT", by_filter | not_native, self_link},
    {"self-links", "openat", "ENOENT", by_filter | not_native, self_links},
    {"thread-self-link", "openat", "ENOENT", by_filter | not_native, thread_self_link},
    {"self-fd-numbers", "openat", "ENOENT", by_filter | not_native, self_plain},
    {"dev-fd-numbers", "openat", "ENOENT", by_filter | not_native, dev_fd_plain},
    {"self-stat-link", "openat", "ENOENT", by_filter | not_native, self_stat_link},
    {"self-stat-chdir", "openat", "ENOENT", by_filter | not_native, self_stat_dirfd},
    {"proc-root-read", "openat", CLOSED, by_gate, root_read},
    {"proc-root-write", "openat", CLOSED, by_gate, root_write},
    {"proc-cwd-write", "openat", CLOSED, by_gate, cwd_write},
    {"proc-environ", "openat", CLOSED, by_gate, environment},
    {"proc-mem-read", "openat", CLOSED, by_gate, memory_read},
    {"proc-mem-write", "openat", CLOSED, by_gate, memory_write},
    {"proc-maps", "openat", CLOSED, by_gate, maps},
    {"proc-smaps", "openat", CLOSED, by_gate, smaps},
    {"proc-pagemap", "openat", CLOSED, by_gate, pagemap},
    {"proc-auxv", "openat", CLOSED, by_gate, auxv},
    {"proc-oom", "openat", CLOSED, by_gate, oom_score},
    {"proc-comm", "openat", CLOSED, by_gate, comm_write},
    {"proc-coredump-filter", "openat", CLOSED, by_gate, coredump_filter},
    {"proc-clear-refs", "openat", CLOSED, by_gate, clear_refs},
    {"proc-attr", "openat", CLOSED, by_gate | not_native, attr_write},
    {"proc-uid-map", "openat", CLOSED, by_gate, uid_map},
    {"proc-ns", "openat", CLOSED, by_gate, namespace_open},
    {"core-pattern", "openat", CLOSED, by_gate | needs_root, core_pattern},
    {"sysrq", "openat", CLOSED, by_gate | needs_root, sysrq},
    {"hostname-knob", "openat", CLOSED, by_gate | needs_root, hostname_knob},
    {"sysfs-write", "openat", CLOSED, by_gate | needs_root, sysfs_write},
    {"cgroup-write", "openat", CLOSED, by_gate | needs_root, cgroup_write},
    {"kmsg-read", "openat", CLOSED, by_gate | needs_root, kmsg_read},
    {"kmsg-write", "openat", CLOSED, by_gate | needs_root, kmsg_write},
    {"dev-mem", "openat", CLOSED, by_gate | needs_root, memory_device},
    {"dev-disk", "openat", CLOSED, by_gate | needs_root | not_native, disk},
    {"make-device", "mknod", CLOSED, by_gate | needs_root, make_device},
    {"kcore", "openat", CLOSED, by_gate | needs_root, kernel_core},
    {"dev-fuse", "openat", CLOSED, by_gate | needs_root, fuse_device},
    {0},
};
