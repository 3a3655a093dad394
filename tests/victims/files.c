/* File operations on places outside, crossed with the ways to say where: every row of one table
 * with every row of the other where the two fit. */
#define _GNU_SOURCE
#include "victim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

/* The target: a directory outside, a leaf in it. */
struct target {
  const char* directory;
  const char* leaf;
};
/* What a form makes of it: arguments for the call. */
struct spelled {
  int dirfd;
  const char* path;
};

/* --- forms -------------------------------------------------------------------------------- */

enum form_flag {
  at_only = 1,    /* needs a call with a directory descriptor */
  final_link = 2, /* the last component is a link: the call must follow it */
  existing = 4,   /* the leaf must exist (a descriptor of it is opened) */
  empty_path = 8, /* AT_EMPTY_PATH */
  magic = 16,     /* the last component is a link of procfs: it cannot be made through */
};

struct form {
  const char* name;
  unsigned flags;
  int (*spell)(const struct target*, struct spelled*); /* false: cannot, see errno */
};

static int path_is(struct spelled* to, const char* path) {
  to->dirfd = AT_FDCWD;
  to->path = path;
  return 1;
}

static int absolute(const struct target* t, struct spelled* s) {
  return path_is(s, format("%s/%s", t->directory, t->leaf));
}

static int relative(const struct target* t, struct spelled* s) {
  char here[PATH_MAX];
  if (getcwd(here, sizeof here) == NULL) return 0;
  char up[PATH_MAX] = "";
  for (const char* c = here; *c != 0; ++c)
    if (*c == '/') strcat(up, "../");
  return path_is(s, format("%s.%s/%s", up, t->directory, t->leaf));
}

static int by_dirfd(const struct target* t, struct spelled* s) {
  s->dirfd = open(t->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  s->path = t->leaf;
  return s->dirfd >= 0;
}

static int by_path_dirfd(const struct target* t, struct spelled* s) {
  s->dirfd = open(t->directory, O_PATH | O_CLOEXEC);
  s->path = t->leaf;
  return s->dirfd >= 0;
}

static int ignored_dirfd(const struct target* t, struct spelled* s) {
  s->dirfd = open(".", O_PATH | O_CLOEXEC);
  s->path = format("%s/%s", t->directory, t->leaf);
  return s->dirfd >= 0;
}

static int from_chdir(const struct target* t, struct spelled* s) {
  if (chdir(t->directory) != 0) return 0;
  return path_is(s, t->leaf);
}

static int through_link(const struct target* t, struct spelled* s) {
  if (symlink(t->directory, "way") != 0) return 0;
  return path_is(s, format("way/%s", t->leaf));
}

static int through_links(const struct target* t, struct spelled* s) {
  if (symlink(t->directory, "l0") != 0) return 0;
  for (int i = 1; i < 6; ++i)
    if (symlink(format("l%d", i - 1), format("l%d", i)) != 0) return 0;
  return path_is(s, format("./l5/./%s", t->leaf));
}

static int through_dirfd_link(const struct target* t, struct spelled* s) {
  if (symlink(t->directory, "way") != 0) return 0;
  s->dirfd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  s->path = format("way/%s", t->leaf);
  return s->dirfd >= 0;
}

static int at_link(const struct target* t, struct spelled* s) {
  if (symlink(format("%s/%s", t->directory, t->leaf), "leaf") != 0) return 0;
  return path_is(s, "leaf");
}

/* project/a -> WORLD/dir; "a/../x" is WORLD/x for the kernel, project/x for a lexical reader. */
static int dot_dot_through_link(const struct target* t, struct spelled* s) {
  char* below = format("%s/dir", t->directory);
  struct stat st;
  if (stat(below, &st) != 0) below = format("%s/.", t->directory);
  if (symlink(below, "down") != 0) return 0;
  return path_is(s, strcmp(below + strlen(below) - 2, "/.") == 0 ? format("down/%s", t->leaf)
                                                                 : format("down/../%s", t->leaf));
}

static int odd_spelling(const struct target* t, struct spelled* s) {
  return path_is(s, format("//%s/.//./%s", t->directory, t->leaf));
}

static int trailing_slash(const struct target* t, struct spelled* s) {
  return path_is(s, format("%s/%s/", t->directory, t->leaf));
}

static int fd_in_the_middle(const struct target* t, struct spelled* s) {
  const int fd = open(t->directory, O_PATH | O_CLOEXEC);
  return fd >= 0 && path_is(s, format("/proc/self/fd/%d/%s", fd, t->leaf));
}

static int thread_self_in_the_middle(const struct target* t, struct spelled* s) {
  const int fd = open(t->directory, O_PATH | O_CLOEXEC);
  return fd >= 0 && path_is(s, format("/proc/thread-self/fd/%d/%s", fd, t->leaf));
}

static int pid_in_the_middle(const struct target* t, struct spelled* s) {
  const int fd = open(t->directory, O_PATH | O_CLOEXEC);
  return fd >= 0 &&
         path_is(s, format("/proc/%d/task/%d/fd/%d/%s", getpid(), getpid(), fd, t->leaf));
}

static int dev_fd_in_the_middle(const struct target* t, struct spelled* s) {
  const int fd = open(t->directory, O_PATH | O_CLOEXEC);
  return fd >= 0 && path_is(s, format("/dev/fd/%d/%s", fd, t->leaf));
}

static int through_root(const struct target* t, struct spelled* s) {
  return path_is(s, format("/proc/self/root%s/%s", t->directory, t->leaf));
}

static int through_cwd(const struct target* t, struct spelled* s) {
  if (chdir(t->directory) != 0) return 0;
  return path_is(s, format("/proc/self/cwd/%s", t->leaf));
}

static int link_to_own_fds(const struct target* t, struct spelled* s) {
  const int fd = open(t->directory, O_PATH | O_CLOEXEC);
  if (fd < 0 || symlink("/proc/self/fd", "fds") != 0) return 0;
  return path_is(s, format("fds/%d/%s", fd, t->leaf));
}

static int at_fd(const struct target* t, struct spelled* s) {
  const int fd = open(format("%s/%s", t->directory, t->leaf), O_PATH | O_CLOEXEC);
  return fd >= 0 && path_is(s, format("/proc/self/fd/%d", fd));
}

static int at_dev_fd(const struct target* t, struct spelled* s) {
  const int fd = open(format("%s/%s", t->directory, t->leaf), O_PATH | O_CLOEXEC);
  return fd >= 0 && path_is(s, format("/dev/fd/%d", fd));
}

static int at_empty(const struct target* t, struct spelled* s) {
  s->dirfd = open(format("%s/%s", t->directory, t->leaf), O_PATH | O_CLOEXEC);
  s->path = "";
  return s->dirfd >= 0;
}

static const struct form forms[] = {
    {"absolute", 0, absolute},
    {"relative", 0, relative},
    {"chdir", 0, from_chdir},
    {"dirfd", at_only, by_dirfd},
    {"path-dirfd", at_only, by_path_dirfd},
    {"ignored-dirfd", at_only, ignored_dirfd},
    {"through-link", 0, through_link},
    {"through-links", 0, through_links},
    {"dirfd-link", at_only, through_dirfd_link},
    {"at-link", final_link, at_link},
    {"dotdot-link", 0, dot_dot_through_link},
    {"odd-spelling", 0, odd_spelling},
    {"fd-middle", 0, fd_in_the_middle},
    {"thread-self-middle", 0, thread_self_in_the_middle},
    {"pid-middle", 0, pid_in_the_middle},
    {"dev-fd-middle", 0, dev_fd_in_the_middle},
    {"proc-root", 0, through_root},
    {"proc-cwd", 0, through_cwd},
    {"link-to-fds", 0, link_to_own_fds},
    {"at-fd", final_link | existing | magic, at_fd},
    {"at-dev-fd", final_link | existing | magic, at_dev_fd},
    {"empty-path", at_only | empty_path | existing, at_empty},
};

/* --- operations ---------------------------------------------------------------------------- */

enum op_flag {
  has_dirfd = 1,
  follows = 2,       /* the last component, when it is a link */
  makes = 4,         /* the leaf must be absent */
  dangling = 8,      /* makes through a dangling link */
  takes_empty = 16,  /* AT_EMPTY_PATH */
  of_directory = 32, /* the leaf is an empty directory */
  of_secret = 64,    /* the target is the secret */
  cannot_magic = 128,
  removes_name = 256, /* acts on the name: a magic link as last component is refused natively */
};

struct op {
  const char* name;
  const char* calls;
  unsigned flags;
  long (*act)(const struct spelled*);
};

static int at_flags(const struct spelled* s) {
  return s->path[0] == 0 ? AT_EMPTY_PATH : 0;
}

/* Opened is enough to have worked: but write, so that a native run shows it. */
static long write_opened(long fd) {
  if (fd < 0) return -1;
  return write((int)fd, "overwritten\n", 12);
}
static long open_write(const struct spelled* s) {
  return write_opened(syscall(SYS_open, s->path, O_WRONLY));
}
static long openat_read_write(const struct spelled* s) {
  return write_opened(syscall(SYS_openat, s->dirfd, s->path, O_RDWR));
}
static long openat_append(const struct spelled* s) {
  return write_opened(syscall(SYS_openat, s->dirfd, s->path, O_WRONLY | O_APPEND | O_NONBLOCK));
}
static long open_truncate(const struct spelled* s) {
  return syscall(SYS_openat, s->dirfd, s->path, O_RDONLY | O_TRUNC);
}
static long open_access3(const struct spelled* s) { /* mode 3: no reading nor writing, but ioctl */
  return syscall(SYS_openat, s->dirfd, s->path, O_WRONLY | O_RDWR);
}
static long creat_over(const struct spelled* s) {
  return syscall(SYS_creat, s->path, 0644);
}
static long openat_create(const struct spelled* s) {
  return write_opened(syscall(SYS_openat, s->dirfd, s->path, O_WRONLY | O_CREAT, 0644));
}
static long openat_create_exclusive(const struct spelled* s) {
  return syscall(SYS_openat, s->dirfd, s->path, O_RDONLY | O_CREAT | O_EXCL, 0644);
}
static long open_create(const struct spelled* s) {
  return syscall(SYS_open, s->path, O_RDWR | O_CREAT, 0600);
}
static long creat_new(const struct spelled* s) {
  return syscall(SYS_creat, s->path, 0600);
}
static long open_unnamed(const struct spelled* s) {
  const long fd = syscall(SYS_openat, s->dirfd, s->path, O_RDWR | O_TMPFILE, 0600);
  return write_opened(fd);
}
static long do_truncate(const struct spelled* s) {
  return syscall(SYS_truncate, s->path, 1L);
}
static long do_unlink(const struct spelled* s) {
  return syscall(SYS_unlink, s->path);
}
static long do_unlinkat(const struct spelled* s) {
  return syscall(SYS_unlinkat, s->dirfd, s->path, 0);
}
static long do_rmdir(const struct spelled* s) {
  return syscall(SYS_rmdir, s->path);
}
static long unlinkat_directory(const struct spelled* s) {
  return syscall(SYS_unlinkat, s->dirfd, s->path, AT_REMOVEDIR);
}
static long do_mkdir(const struct spelled* s) {
  return syscall(SYS_mkdir, s->path, 0755);
}
static long do_mkdirat(const struct spelled* s) {
  return syscall(SYS_mkdirat, s->dirfd, s->path, 0755);
}
static long mknod_fifo(const struct spelled* s) {
  return syscall(SYS_mknod, s->path, S_IFIFO | 0600, 0);
}
static long mknodat_file(const struct spelled* s) {
  return syscall(SYS_mknodat, s->dirfd, s->path, S_IFREG | 0600, 0);
}
static long mknodat_socket(const struct spelled* s) {
  return syscall(SYS_mknodat, s->dirfd, s->path, S_IFSOCK | 0600, 0);
}
static long do_symlink(const struct spelled* s) {
  return syscall(SYS_symlink, "/etc/hostname", s->path);
}
static long do_symlinkat(const struct spelled* s) {
  return syscall(SYS_symlinkat, "/etc/hostname", s->dirfd, s->path);
}

static const char* own_file(void) { /* an absolute name, because forms change the directory */
  static char path[PATH_MAX];
  char here[PATH_MAX - 8];
  if (path[0] == 0) {
    if (getcwd(here, sizeof here) == NULL) exit(could_not("getcwd"));
    snprintf(path, sizeof path, "%s/own", here);
    if (write_file(path, "own\n") != 0) exit(could_not("own file"));
  }
  return path;
}
static const char* own_name(void) {
  return format("%s.name", own_file());
}

static long rename_here(const struct spelled* s) {
  return syscall(SYS_rename, own_file(), s->path);
}
static long renameat_here(const struct spelled* s) {
  return syscall(SYS_renameat, AT_FDCWD, own_file(), s->dirfd, s->path);
}
static long renameat2_new(const struct spelled* s) {
  return syscall(SYS_renameat2, AT_FDCWD, own_file(), s->dirfd, s->path, RENAME_NOREPLACE);
}
static long renameat2_exchange(const struct spelled* s) {
  return syscall(SYS_renameat2, AT_FDCWD, own_file(), s->dirfd, s->path, RENAME_EXCHANGE);
}
static long renameat2_exchange_from(const struct spelled* s) {
  return syscall(SYS_renameat2, s->dirfd, s->path, AT_FDCWD, own_file(), RENAME_EXCHANGE);
}
static long rename_away(const struct spelled* s) {
  return syscall(SYS_rename, s->path, own_name());
}
static long renameat_away(const struct spelled* s) {
  return syscall(SYS_renameat, s->dirfd, s->path, AT_FDCWD, own_name());
}
static long link_here(const struct spelled* s) {
  return syscall(SYS_link, own_file(), s->path);
}
static long linkat_here(const struct spelled* s) {
  return syscall(SYS_linkat, AT_FDCWD, own_file(), s->dirfd, s->path, 0);
}
/* A second name of the outside file in the project, and a change through it: the link alone need
 * not be refused, but then nothing may be changed by it. */
static long link_in(const struct spelled* s) {
  if (syscall(SYS_linkat, s->dirfd, s->path, AT_FDCWD, own_name(), at_flags(s)) != 0) return -1;
  return write_opened(open(own_name(), O_WRONLY));
}
static long linkat_follow_in(const struct spelled* s) {
  if (syscall(SYS_linkat, s->dirfd, s->path, AT_FDCWD, own_name(), AT_SYMLINK_FOLLOW) != 0)
    return -1;
  return write_opened(open(own_name(), O_WRONLY));
}
static int unnamed_here(void) {
  const int fd = open(".", O_RDWR | O_TMPFILE, 0600);
  if (fd < 0) exit(could_not("O_TMPFILE in the project"));
  return fd;
}
static long linkat_unnamed(const struct spelled* s) {
  return syscall(SYS_linkat, AT_FDCWD, format("/proc/self/fd/%ld", (long)s[1].dirfd), s->dirfd,
                 s->path, AT_SYMLINK_FOLLOW);
}
static long linkat_unnamed_empty(const struct spelled* s) {
  return syscall(SYS_linkat, s[1].dirfd, "", s->dirfd, s->path, AT_EMPTY_PATH);
}
static long bind_name(const struct spelled* s) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(s->path) >= sizeof address.sun_path) exit(could_not("path is too long for a socket"));
  strcpy(address.sun_path, s->path);
  return bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr*)&address, sizeof address);
}

static long do_chmod(const struct spelled* s) {
  return syscall(SYS_chmod, s->path, 0777);
}
static long do_fchmodat(const struct spelled* s) {
  return syscall(SYS_fchmodat, s->dirfd, s->path, 0600);
}
static long do_fchmodat2(const struct spelled* s) {
  return syscall(SYS_fchmodat2, s->dirfd, s->path, 0640, at_flags(s));
}
/* To the own user and group: allowed to everybody, changes the time of change. */
static long do_chown(const struct spelled* s) {
  return syscall(SYS_chown, s->path, getuid(), getgid());
}
static long do_lchown(const struct spelled* s) {
  return syscall(SYS_lchown, s->path, getuid(), getgid());
}
static long do_fchownat(const struct spelled* s) {
  return syscall(SYS_fchownat, s->dirfd, s->path, getuid(), getgid(), at_flags(s));
}
static long do_utime(const struct spelled* s) {
  return syscall(SYS_utime, s->path, &(struct utimbuf){1, 1});
}
static const struct timeval old_times[2] = {{1, 0}, {1, 0}};
static long do_utimes(const struct spelled* s) {
  return syscall(SYS_utimes, s->path, old_times);
}
static long do_futimesat(const struct spelled* s) {
  return syscall(SYS_futimesat, s->dirfd, s->path, old_times);
}
static long do_utimensat(const struct spelled* s) {
  const struct timespec times[2] = {{1, 0}, {1, 0}};
  return syscall(SYS_utimensat, s->dirfd, s->path, times, at_flags(s));
}
static long utimensat_now(const struct spelled* s) {
  return syscall(SYS_utimensat, s->dirfd, s->path, NULL, AT_SYMLINK_NOFOLLOW);
}
static long do_setxattr(const struct spelled* s) {
  return syscall(SYS_setxattr, s->path, "user.victim", "1", 1UL, 0);
}
static long do_lsetxattr(const struct spelled* s) {
  return syscall(SYS_lsetxattr, s->path, "user.victim", "1", 1UL, 0);
}
static long do_removexattr(const struct spelled* s) {
  return syscall(SYS_removexattr, s->path, "user.present");
}
static long do_lremovexattr(const struct spelled* s) {
  return syscall(SYS_lremovexattr, s->path, "user.present");
}

static long read_opened(long fd) {
  char text[64];
  if (fd < 0) return -1;
  return read((int)fd, text, sizeof text) > 0 ? 0 : -1;
}
static long open_read(const struct spelled* s) {
  return read_opened(syscall(SYS_open, s->path, O_RDONLY));
}
static long openat_read(const struct spelled* s) {
  return read_opened(syscall(SYS_openat, s->dirfd, s->path, O_RDONLY | O_NOATIME));
}
static long openat_read_plain(const struct spelled* s) {
  return read_opened(syscall(SYS_openat, s->dirfd, s->path, O_RDONLY));
}
static long link_read(const struct spelled* s) {
  if (syscall(SYS_linkat, s->dirfd, s->path, AT_FDCWD, own_name(), at_flags(s)) != 0) return -1;
  return read_opened(open(own_name(), O_RDONLY));
}
static long rename_read(const struct spelled* s) {
  if (syscall(SYS_renameat, s->dirfd, s->path, AT_FDCWD, own_name()) != 0) return -1;
  return read_opened(open(own_name(), O_RDONLY));
}
/* A descriptor without access, reopened with it. */
static long reopen_read(const struct spelled* s) {
  const int fd = (int)syscall(SYS_openat, s->dirfd, s->path, O_PATH);
  return fd < 0 ? -1 : read_opened(open(format("/proc/self/fd/%d", fd), O_RDONLY));
}
static long reopen_write(const struct spelled* s) {
  const int fd = (int)syscall(SYS_openat, s->dirfd, s->path, O_PATH);
  return fd < 0 ? -1 : write_opened(open(format("/proc/self/fd/%d", fd), O_WRONLY));
}
static long reopen_read_as_write(const struct spelled* s) {
  const int fd = (int)syscall(SYS_openat, s->dirfd, s->path, O_RDONLY);
  return fd < 0 ? -1 : write_opened(open(format("/dev/fd/%d", fd), O_RDWR));
}

static const struct op ops[] = {
    {"open-write", "open", follows, open_write},
    {"openat-read-write", "openat", has_dirfd | follows, openat_read_write},
    {"openat-append", "openat", has_dirfd | follows, openat_append},
    {"open-truncate", "openat", has_dirfd | follows, open_truncate},
    {"open-access3", "openat", has_dirfd | follows, open_access3},
    {"reopen-write", "openat", has_dirfd | follows, reopen_write},
    {"reopen-read-write", "openat", has_dirfd | follows, reopen_read_as_write},
    {"creat-over", "creat", follows, creat_over},
    {"truncate", "truncate", follows, do_truncate},
    {"openat-create", "openat", has_dirfd | makes | dangling, openat_create},
    {"openat-create-excl", "openat", has_dirfd | makes, openat_create_exclusive},
    {"open-create", "open", makes | dangling, open_create},
    {"creat-new", "creat", makes | dangling, creat_new},
    {"open-unnamed", "openat", has_dirfd | follows | of_directory, open_unnamed},
    {"unlink", "unlink", removes_name, do_unlink},
    {"unlinkat", "unlinkat", has_dirfd | removes_name, do_unlinkat},
    {"rmdir", "rmdir", of_directory | removes_name, do_rmdir},
    {"unlinkat-dir", "unlinkat", has_dirfd | of_directory | removes_name, unlinkat_directory},
    {"mkdir", "mkdir", makes, do_mkdir},
    {"mkdirat", "mkdirat", has_dirfd | makes, do_mkdirat},
    {"mknod-fifo", "mknod", makes, mknod_fifo},
    {"mknodat-file", "mknodat", has_dirfd | makes, mknodat_file},
    {"mknodat-socket", "mknodat", has_dirfd | makes, mknodat_socket},
    {"symlink", "symlink", makes, do_symlink},
    {"symlinkat", "symlinkat", has_dirfd | makes, do_symlinkat},
    {"rename-to", "rename", makes, rename_here},
    {"rename-over", "rename", removes_name, rename_here},
    {"renameat-over", "renameat", has_dirfd | removes_name, renameat_here},
    {"renameat2-new", "renameat2", has_dirfd | makes, renameat2_new},
    {"renameat2-exchange", "renameat2", has_dirfd | removes_name, renameat2_exchange},
    {"renameat2-exchange-from", "renameat2", has_dirfd | removes_name, renameat2_exchange_from},
    {"rename-away", "rename", removes_name, rename_away},
    {"renameat-away", "renameat", has_dirfd | removes_name, renameat_away},
    {"renameat-away-dir", "renameat", has_dirfd | removes_name | of_directory, renameat_away},
    {"link-to", "link", makes, link_here},
    {"linkat-to", "linkat", has_dirfd | makes, linkat_here},
    {"link-in", "linkat", has_dirfd | removes_name, link_in},
    {"linkat-follow-in", "linkat", has_dirfd | follows, linkat_follow_in},
    {"linkat-unnamed", "linkat", has_dirfd | makes, linkat_unnamed},
    {"linkat-unnamed-empty", "linkat", has_dirfd | makes, linkat_unnamed_empty},
    {"bind", "bind", makes, bind_name},
    {"chmod", "chmod", follows, do_chmod},
    {"chmod-dir", "chmod", follows | of_directory, do_chmod},
    {"fchmodat", "fchmodat", has_dirfd | follows, do_fchmodat},
    {"fchmodat2", "fchmodat2", has_dirfd | follows | takes_empty, do_fchmodat2},
    {"chown", "chown", follows, do_chown},
    {"lchown", "lchown", removes_name, do_lchown},
    {"fchownat", "fchownat", has_dirfd | follows | takes_empty, do_fchownat},
    {"utime", "utime", follows, do_utime},
    {"utimes", "utimes", follows, do_utimes},
    {"futimesat", "futimesat", has_dirfd | follows, do_futimesat},
    {"utimensat", "utimensat", has_dirfd | follows | takes_empty, do_utimensat},
    {"utimensat-now", "utimensat", has_dirfd | removes_name, utimensat_now},
    {"setxattr", "setxattr", follows, do_setxattr},
    {"lsetxattr", "lsetxattr", removes_name, do_lsetxattr},
    {"removexattr", "removexattr", follows, do_removexattr},
    {"lremovexattr", "lremovexattr", removes_name, do_lremovexattr},
    {"secret-open", "open", follows | of_secret, open_read},
    {"secret-openat", "openat", has_dirfd | follows | of_secret, openat_read},
    {"secret-openat-plain", "openat", has_dirfd | follows | of_secret, openat_read_plain},
    {"secret-reopen", "openat", has_dirfd | follows | of_secret, reopen_read},
    {"secret-link", "linkat", has_dirfd | removes_name | of_secret, link_read},
    {"secret-rename", "renameat", has_dirfd | removes_name | of_secret, rename_read},
};

static int fits(const struct op* op, const struct form* form) {
  if ((form->flags & at_only) != 0 && (op->flags & has_dirfd) == 0) return 0;
  if ((form->flags & empty_path) != 0 && (op->flags & takes_empty) == 0) return 0;
  if ((form->flags & existing) != 0 && (op->flags & makes) != 0) return 0;
  if ((form->flags & final_link) != 0 && (form->flags & magic) == 0 &&
      (op->flags & (follows | dangling)) == 0)
    return 0;
  if ((form->flags & magic) != 0 && (op->flags & follows) == 0) return 0;
  return 1;
}

/* Directories may be spelled with a slash at the end. */
static const struct form slash = {"trailing-slash", 0, trailing_slash};

static const char* row_name(const struct op* op, const struct form* form) {
  return format("%s/%s", op->name, form->name);
}

void list_files(void (*each)(const struct victim*)) {
  for (size_t o = 0; o < sizeof ops / sizeof *ops; ++o) {
    const struct op* op = &ops[o];
    struct victim row = {.calls = op->calls, .errors = "EACCES", .flags = by_gate};
    if ((op->flags & of_secret) != 0) row.flags |= of_secrets;
    for (size_t f = 0; f < sizeof forms / sizeof *forms; ++f) {
      row.name = row_name(op, &forms[f]);
      if (fits(op, &forms[f])) each(&row);
    }
    if ((op->flags & of_directory) != 0 || op->act == do_mkdir || op->act == do_mkdirat) {
      row.name = row_name(op, &slash);
      each(&row);
    }
  }
}

int run_file(const char* name) {
  const char* cut = strchr(name, '/');
  if (cut == NULL) return -1;
  const struct op* op = NULL;
  const struct form* form = strcmp(cut + 1, slash.name) == 0 ? &slash : NULL;
  for (size_t o = 0; o < sizeof ops / sizeof *ops; ++o)
    if (strlen(ops[o].name) == (size_t)(cut - name) &&
        strncmp(ops[o].name, name, strlen(ops[o].name)) == 0)
      op = &ops[o];
  for (size_t f = 0; f < sizeof forms / sizeof *forms; ++f)
    if (strcmp(forms[f].name, cut + 1) == 0) form = &forms[f];
  if (op == NULL || form == NULL) return -1;

  struct target target = {world, "canary.txt"};
  static char directory[PATH_MAX];
  if ((op->flags & of_secret) != 0) {
    snprintf(directory, sizeof directory, "%s", fact("secret"));
    char* last = strrchr(directory, '/');
    if (last == NULL) return could_not("the secret has no absolute name");
    *last = 0;
    target.directory = directory;
    target.leaf = last + 1;
  } else if ((op->flags & makes) != 0) {
    target.leaf = "new";
  } else if ((op->flags & of_directory) != 0) {
    target.leaf = "empty";
  }
  own_file();
  struct spelled spelled[2] = {{AT_FDCWD, ""}, {-1, ""}};
  if (op->act == linkat_unnamed || op->act == linkat_unnamed_empty)
    spelled[1].dirfd = unnamed_here();
  errno = 0;
  if (!form->spell(&target, &spelled[0]))
    /* Opening the directory of a secret may be refused already; nothing else is needed for a form
     * but O_PATH and what may be read. */
    return (op->flags & of_secret) != 0 && errno == EACCES
               ? says_refused(errno)
               : could_not("the form could not be spelled");
  return outcome(op->act(spelled));
}
