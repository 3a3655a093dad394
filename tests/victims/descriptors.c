/* What a read-only descriptor of a file outside is enough for: Landlock does not see these. */
#define _GNU_SOURCE
#include "victim.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

static int canary(void) {
  const int fd = open(in_world("canary.txt"), O_RDONLY | O_CLOEXEC);
  return fd >= 0 ? fd : (_exit(could_not("open for reading")), -1);
}

static int do_fchmod(void) {
  return outcome(fchmod(canary(), 0777));
}
static int fchmod_directory(void) {
  return outcome(fchmod(open(in_world("dir"), O_RDONLY | O_DIRECTORY), 0777));
}
static int do_fchown(void) {
  return outcome(fchown(canary(), getuid(), getgid()));
}
static int do_futimens(void) {
  const struct timespec times[2] = {{1, 0}, {1, 0}};
  return outcome(futimens(canary(), times));
}
static int futimens_null_path(void) {
  const struct timespec times[2] = {{1, 0}, {1, 0}};
  return outcome(syscall(SYS_utimensat, canary(), NULL, times, 0));
}
static int futimesat_null_path(void) {
  return outcome(syscall(SYS_futimesat, canary(), NULL, NULL));
}
static int do_fsetxattr(void) {
  return outcome(fsetxattr(canary(), "user.victim", "1", 1, 0));
}
static int do_fremovexattr(void) {
  return outcome(fremovexattr(canary(), "user.present"));
}

static int set_flags(void) {
  const int flags = 0x40; /* nodump */
  return outcome(ioctl(canary(), FS_IOC_SETFLAGS, &flags));
}
static int set_flags_high_bits(void) {
  const int flags = 0x40;
  return outcome(syscall(SYS_ioctl, canary(), 0xdeadbeef00000000UL | FS_IOC_SETFLAGS, &flags));
}
static int set_flags_directory(void) {
  const int flags = 0x40;
  return outcome(ioctl(open(in_world("dir"), O_RDONLY | O_DIRECTORY), FS_IOC_SETFLAGS, &flags));
}
static int set_xflags(void) {
  const struct fsxattr attr = {.fsx_xflags = FS_XFLAG_NODUMP};
  return outcome(ioctl(canary(), FS_IOC_FSSETXATTR, &attr));
}
static int set_version(void) {
  const long version = 7;
  return outcome(ioctl(canary(), _IOW('v', 2, long), &version));
}
/* Commands that this file system may not have: natively ENOTTY, EOPNOTSUPP or EINVAL. */
static int verity(void) {
  return probe(ioctl(canary(), 0x40806685, NULL), "EPERM EACCES");
}
static int encryption_policy(void) {
  return probe(ioctl(canary(), 0x800c6613, NULL), "EPERM EACCES");
}
static int encryption_key(void) {
  return probe(ioctl(canary(), 0xc0506617, NULL), "EPERM EACCES");
}
static int fat_attributes(void) {
  return probe(ioctl(canary(), 0x40047211, NULL), "EPERM EACCES");
}
static int freeze(void) {
  return probe(ioctl(open("/proc/self/status", O_RDONLY), FIFREEZE, 0), "EPERM EACCES");
}
static int btrfs_subvolume(void) {
  return probe(ioctl(open(in_world("dir"), O_RDONLY | O_DIRECTORY), 0x5000940e, NULL),
               "EPERM EACCES");
}
static int btrfs_snapshot(void) {
  return probe(ioctl(open(in_world("dir"), O_RDONLY | O_DIRECTORY), 0x50009417, NULL),
               "EPERM EACCES");
}

/* Opens that lead to a write by another way than write(2). */
static int copy_into(void) {
  const int own = open("own", O_RDWR | O_CREAT, 0600);
  if (write(own, "own", 3) != 3) return could_not("own file");
  lseek(own, 0, SEEK_SET);
  const int out = open(in_world("canary.txt"), O_RDWR | O_CLOEXEC);
  if (out < 0) return says_refused(errno);
  return outcome(syscall(SYS_copy_file_range, own, NULL, out, NULL, 3UL, 0));
}
static int map_shared(void) {
  const int out = open(in_world("canary.txt"), O_RDWR | O_CLOEXEC);
  if (out < 0) return says_refused(errno);
  char* text = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, out, 0);
  if (text == MAP_FAILED) return outcome(-1);
  text[0] = 'X';
  return worked;
}
static int clone_into(void) {
  const int own = open("own", O_RDWR | O_CREAT, 0600);
  const int out = open(in_world("canary.txt"), O_WRONLY | O_CLOEXEC);
  if (out < 0) return says_refused(errno);
  return probe(ioctl(out, FICLONE, own), "EACCES");
}

const struct victim descriptor_victims[] = {
    {"fchmod", "fchmod", "EACCES", by_gate, do_fchmod},
    {"fchmod-dir", "fchmod", "EACCES", by_gate, fchmod_directory},
    {"fchown", "fchown", "EACCES", by_gate, do_fchown},
    {"futimens", "utimensat", "EACCES", by_gate, do_futimens},
    {"utimensat-null", "utimensat", "EACCES", by_gate, futimens_null_path},
    {"futimesat-null", "futimesat", "EACCES", by_gate, futimesat_null_path},
    {"fsetxattr", "fsetxattr", "EACCES", by_gate, do_fsetxattr},
    {"fremovexattr", "fremovexattr", "EACCES", by_gate, do_fremovexattr},
    {"setflags", "ioctl", "EACCES", by_gate, set_flags},
    {"setflags-high-bits", "ioctl", "EACCES", by_gate, set_flags_high_bits},
    {"setflags-dir", "ioctl", "EACCES", by_gate, set_flags_directory},
    {"fssetxattr", "ioctl", "EACCES", by_gate, set_xflags},
    {"setversion", "ioctl", "EACCES ENOTTY", by_gate, set_version},
    {"verity", "ioctl", "EPERM EACCES", by_filter, verity},
    {"encryption-policy", "ioctl", "EPERM EACCES", by_filter, encryption_policy},
    {"encryption-key", "ioctl", "EPERM EACCES", by_filter, encryption_key},
    {"fat-attributes", "ioctl", "EPERM EACCES", by_filter, fat_attributes},
    {"freeze", "ioctl", "EPERM EACCES", by_filter | needs_root, freeze},
    {"btrfs-subvolume", "ioctl", "EPERM EACCES", by_filter, btrfs_subvolume},
    {"btrfs-snapshot", "ioctl", "EPERM EACCES", by_filter, btrfs_snapshot},
    {"copy-file-range", "openat", "EACCES", by_gate, copy_into},
    {"map-shared", "openat", "EACCES", by_gate, map_shared},
    {"clone-file", "openat", "EACCES", by_gate, clone_into},
    {0},
};
