/* Typing into terminals, and terminals of others. */
#define _GNU_SOURCE
#include "victim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* A terminal of one's own as controlling terminal: natively one may type into that. Runs in a
 * child, because a session of its own is needed. */
static int on_own_terminal(int (*act)(int slave)) {
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    setsid();
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0) _exit(could_not("openpt"));
    grantpt(master);
    unlockpt(master);
    const int slave = open(ptsname(master), O_RDWR);
    if (slave < 0) _exit(could_not("own terminal"));
    ioctl(slave, TIOCSCTTY, 0);
    exit(act(slave));
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : worked;
}

static int type(int fd) {
  return outcome(ioctl(fd, TIOCSTI, "x"));
}
static int type_high_bits(int fd) {
  return outcome(syscall(SYS_ioctl, fd, 0xffffffff00000000UL | TIOCSTI, "x"));
}
static int type_one_high_bit(int fd) {
  return outcome(syscall(SYS_ioctl, fd, 0x100000000UL | TIOCSTI, "x"));
}
static int type_by_devtty(int fd) {
  close(fd);
  const int tty = open("/dev/tty", O_RDWR);
  if (tty < 0) return could_not("/dev/tty");
  return outcome(ioctl(tty, TIOCSTI, "x"));
}
static int paste(int fd) {
  const char sub[] = {3};
  return probe(ioctl(fd, 0x541c /* TIOCLINUX */, sub), "EPERM");
}
static int paste_high_bits(int fd) {
  const char sub[] = {3};
  return probe(syscall(SYS_ioctl, fd, 0x100000000UL | 0x541c, sub), "EPERM");
}
static int console(int fd) {
  const int flag = fd;
  return probe(ioctl(open("/dev/null", O_RDWR), TIOCCONS, &flag), "EPERM");
}

static int tiocsti(void) {
  return on_own_terminal(type);
}
static int tiocsti_high(void) {
  return on_own_terminal(type_high_bits);
}
static int tiocsti_one_bit(void) {
  return on_own_terminal(type_one_high_bit);
}
static int tiocsti_devtty(void) {
  return on_own_terminal(type_by_devtty);
}
static int tioclinux(void) {
  return on_own_terminal(paste);
}
static int tioclinux_high(void) {
  return on_own_terminal(paste_high_bits);
}
static int tioccons(void) {
  return on_own_terminal(console);
}

static int other_write(void) {
  const int fd = open(fact("pts"), O_WRONLY | O_NOCTTY | O_NONBLOCK);
  return fd < 0 ? says_refused(errno) : outcome(write(fd, "x", 1));
}
static int other_read(void) {
  char byte;
  const int fd = open(fact("pts"), O_RDONLY | O_NOCTTY | O_NONBLOCK);
  return fd < 0 ? says_refused(errno) : outcome(read(fd, &byte, 1));
}
static int other_mode(void) {
  return outcome(chmod(fact("pts"), 0666));
}
static int other_link(void) {
  if (symlink(fact("pts"), "tty") != 0) return could_not("symlink");
  return outcome(open("tty", O_RDWR | O_NOCTTY | O_NONBLOCK));
}
static int other_fd(void) { /* the other's own descriptor of it */
  return outcome(
      open(format("/proc/%s/fd/%s", fact("pid"), fact("master")), O_RDWR | O_NOCTTY | O_NONBLOCK));
}
static int console_device(void) {
  return outcome(open("/dev/console", O_WRONLY | O_NOCTTY | O_NONBLOCK));
}

const struct victim terminal_victims[] = {
    {"tiocsti", "ioctl", "EPERM", by_filter, tiocsti},
    {"tiocsti-high-bits", "ioctl", "EPERM", by_filter, tiocsti_high},
    {"tiocsti-one-bit", "ioctl", "EPERM", by_filter, tiocsti_one_bit},
    {"tiocsti-devtty", "ioctl", "EPERM", by_filter, tiocsti_devtty},
    {"tioclinux", "ioctl", "EPERM", by_filter, tioclinux},
    {"tioclinux-high-bits", "ioctl", "EPERM", by_filter, tioclinux_high},
    {"tioccons", "ioctl", "EPERM", by_filter, tioccons},
    {"pts-write", "openat", "EACCES", by_gate, other_write},
    {"pts-read", "openat", "EACCES", by_gate, other_read},
    {"pts-mode", "chmod", "EACCES EPERM", by_gate, other_mode},
    {"pts-link", "openat", "EACCES", by_gate, other_link},
    {"pts-fd", "openat", "EACCES EPERM", by_gate, other_fd},
    {"console", "openat", "EACCES", by_gate | needs_root, console_device},
    {0},
};
