/* A second thread changes what the first one's call is about, between check and use. Each runs for
 * `seconds`; natively each wins well within one. A win is a file made or changed outside, or a
 * secret read: the tries themselves may be answered in any way. */
#define _GNU_SOURCE
#include "victim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int stop;
static long tries;

static pthread_t begin(void* (*other)(void*)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, other, NULL) != 0) exit(could_not("thread"));
  return thread;
}
static int lost(void) {
  fprintf(stderr, "%ld tries\n", tries);
  return says_refused(EACCES);
}
static int until(double end) {
  ++tries;
  return now() < end;
}

/* --- the text of a path ------------------------------------------------------------------------
 */
static char path[PATH_MAX];
static char allowed[PATH_MAX], denied[PATH_MAX];

static void* flip_path(void* unused) {
  const size_t length = strlen(allowed) + 1;
  while (!stop) {
    memcpy(path, denied, length);
    __asm__ volatile("" ::: "memory"); /* both copies are wanted */
    memcpy(path, allowed, length);
    __asm__ volatile("" ::: "memory");
  }
  return unused;
}
/* Both of the same length, so that no mixture is anything. */
static void two_paths(const char* inside, const char* outside) {
  char here[PATH_MAX];
  if (getcwd(here, sizeof here) == NULL) exit(could_not("getcwd"));
  snprintf(denied, sizeof denied, "%s", outside);
  snprintf(allowed, sizeof allowed, "%.2048s/%.512s", here, inside);
  while (strlen(allowed) < strlen(denied)) memmove(allowed + 1, allowed, strlen(allowed) + 1);
  while (strlen(denied) < strlen(allowed)) memmove(denied + 1, denied, strlen(denied) + 1);
  for (char* c = allowed; *c != 0 && *c != '/';) *c++ = '/';
  for (char* c = denied; *c != 0 && *c != '/';) *c++ = '/';
  memcpy(path, allowed, sizeof path);
}

static int flip_read(void) {
  write_file("ok", "harmless");
  two_paths("ok", fact("secret"));
  const pthread_t other = begin(flip_path);
  int won = 0;
  for (const double end = now() + seconds; !won && until(end);) {
    char text[16] = "";
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
    if (fd < 0) continue;
    if (read(fd, text, 8) > 0 && memcmp(text, "harmless", 8) != 0) won = 1;
    close(fd);
  }
  stop = 1;
  pthread_join(other, NULL);
  return won ? worked : lost();
}
static int flip_write(void) {
  two_paths("ok", in_world("new"));
  const pthread_t other = begin(flip_path);
  int won = 0;
  for (const double end = now() + seconds; !won && until(end);) {
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT, 0600);
    if (fd >= 0) close(fd);
    won = access(in_world("new"), F_OK) == 0;
  }
  stop = 1;
  pthread_join(other, NULL);
  return won ? worked : lost();
}
static int flip_remove(void) {
  two_paths("ok", in_world("canary.txt"));
  const pthread_t other = begin(flip_path);
  int won = 0;
  for (const double end = now() + seconds; !won && until(end);) {
    syscall(SYS_unlink, path);
    won = access(in_world("canary.txt"), F_OK) != 0;
  }
  stop = 1;
  pthread_join(other, NULL);
  return won ? worked : lost();
}
static int flip_chmod(void) {
  write_file("ok", "harmless");
  two_paths("ok", in_world("canary.txt"));
  const pthread_t other = begin(flip_path);
  int won = 0;
  for (const double end = now() + seconds; !won && until(end);) {
    struct stat st;
    syscall(SYS_chmod, path, 0600);
    won = stat(in_world("canary.txt"), &st) == 0 && (st.st_mode & 0777) == 0600;
  }
  stop = 1;
  pthread_join(other, NULL);
  return won ? worked : lost();
}

/* --- a directory and a link that change places ---------------------------------------------------
 */
static const char* swap_to;
static void* swap(void* unused) {
  mkdir("d", 0755);
  if (symlink(swap_to, "l") != 0) exit(could_not("symlink"));
  while (!stop) syscall(SYS_renameat2, AT_FDCWD, "d", AT_FDCWD, "l", RENAME_EXCHANGE);
  return unused;
}
static pthread_t begin_swap(const char* to) {
  static char kept[PATH_MAX];
  snprintf(kept, sizeof kept, "%s", to);
  swap_to = kept;
  return begin(swap);
}
static int swap_create(void) {
  const pthread_t other = begin_swap(world);
  int won = 0;
  for (const double end = now() + seconds; !won && until(end);) {
    const int fd = open("d/new", O_WRONLY | O_CREAT, 0600);
    if (fd >= 0) close(fd);
    won = access(in_world("new"), F_OK) == 0;
  }
  stop = 1;
  pthread_join(other, NULL);
  return won ? worked : lost();
}
static int swap_write(void) {
  write_file("own", "own");
  const pthread_t other = begin_swap(world);
  int won = 0;
  for (const double end = now() + seconds; !won && until(end);) {
    const int fd = open("d/canary.txt", O_WRONLY | O_TRUNC);
    if (fd >= 0) close(fd);
    struct stat st;
    won = stat(in_world("canary.txt"), &st) == 0 && st.st_size == 0;
  }
  stop = 1;
  pthread_join(other, NULL);
  return won ? worked : lost();
}
static int swap_remove(void) {
  const pthread_t other = begin_swap(world);
  int won = 0;
  for (const double end = now() + seconds; !won && until(end);) {
    unlink("d/canary.txt");
    won = access(in_world("canary.txt"), F_OK) != 0;
  }
  stop = 1;
  pthread_join(other, NULL);
  return won ? worked : lost();
}
static int swap_rename(void) {
  const pthread_t other = begin_swap(world);
  int won = 0;
  for (const double end = now() + seconds; !won && until(end);) {
    write_file("own", "own");
    rename("own", "d/canary.txt");
    won = same_file_text(in_world("canary.txt"), "own");
  }
  stop = 1;
  pthread_join(other, NULL);
  return won ? worked : lost();
}
static int swap_mkdir(void) {
  const pthread_t other = begin_swap(world);
  int won = 0;
  for (const double end = now() + seconds; !won && until(end);) {
    mkdir("d/new", 0700);
    won = access(in_world("new"), F_OK) == 0;
  }
  stop = 1;
  pthread_join(other, NULL);
  return won ? worked : lost();
}
static int swap_read(void) {
  char directory[PATH_MAX], leaf[300];
  snprintf(directory, sizeof directory, "%s", fact("secret"));
  snprintf(leaf, sizeof leaf, "d/%.256s", strrchr(directory, '/') + 1);
  *strrchr(directory, '/') = 0;
  const pthread_t other = begin_swap(directory);
  int won = 0;
  for (const double end = now() + seconds; !won && until(end);) {
    char byte;
    const int fd = open(leaf, O_RDONLY);
    if (fd < 0) continue;
    won = read(fd, &byte, 1) == 1;
    close(fd);
  }
  stop = 1;
  pthread_join(other, NULL);
  return won ? worked : lost();
}

/* --- the meaning of a relative path
 * ----------------------------------------------------------------- */
static int here_fd, outside_fd, shared_fd;
static void* flip_cwd(void* unused) {
  while (!stop) {
    if (fchdir(outside_fd) != 0 || fchdir(here_fd) != 0) exit(could_not("fchdir"));
  }
  return unused;
}
static void* flip_descriptor(void* unused) {
  while (!stop) {
    dup2(outside_fd, shared_fd);
    dup2(here_fd, shared_fd);
  }
  return unused;
}
static void open_both(void) {
  here_fd = open(".", O_PATH | O_DIRECTORY);
  outside_fd = open(world, O_PATH | O_DIRECTORY);
  shared_fd = dup(here_fd);
  if (here_fd < 0 || outside_fd < 0) exit(could_not("open directories"));
}
static int cwd_create(void) {
  open_both();
  const pthread_t other = begin(flip_cwd);
  int won = 0;
  for (const double end = now() + seconds; !won && until(end);) {
    const int fd = open("new", O_WRONLY | O_CREAT, 0600);
    if (fd >= 0) close(fd);
    won = faccessat(outside_fd, "new", F_OK, 0) == 0;
  }
  stop = 1;
  pthread_join(other, NULL);
  return won ? worked : lost();
}
static int dirfd_create(void) {
  open_both();
  const pthread_t other = begin(flip_descriptor);
  int won = 0;
  for (const double end = now() + seconds; !won && until(end);) {
    const int fd = openat(shared_fd, "new", O_WRONLY | O_CREAT, 0600);
    if (fd >= 0) close(fd);
    won = faccessat(outside_fd, "new", F_OK, 0) == 0;
  }
  stop = 1;
  pthread_join(other, NULL);
  return won ? worked : lost();
}
/* fchmod on a number that changes its file. */
static int descriptor_chmod(void) {
  write_file("ok", "ok");
  here_fd = open("ok", O_RDONLY);
  outside_fd = open(in_world("canary.txt"), O_RDONLY);
  shared_fd = dup(here_fd);
  const pthread_t other = begin(flip_descriptor);
  int won = 0;
  for (const double end = now() + seconds; !won && until(end);) {
    struct stat st;
    fchmod(shared_fd, 0600);
    won = fstat(outside_fd, &st) == 0 && (st.st_mode & 0777) == 0600;
  }
  stop = 1;
  pthread_join(other, NULL);
  return won ? worked : lost();
}

/* --- the bytes of an address
 * ------------------------------------------------------------------------ */
static struct sockaddr_in address;
static uint16_t own_port, outside_port;
static void* flip_port(void* unused) {
  while (!stop) {
    *(volatile uint16_t*)&address.sin_port = outside_port;
    *(volatile uint16_t*)&address.sin_port = own_port;
  }
  return unused;
}
static int flip_connect(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof at;
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (bind(listener, (struct sockaddr*)&at, sizeof at) != 0 || listen(listener, 4096) != 0 ||
      getsockname(listener, (struct sockaddr*)&at, &length) != 0)
    return could_not("own listener");
  address = at;
  own_port = at.sin_port;
  outside_port = htons((uint16_t)fact_number("tcp"));
  const pthread_t other = begin(flip_port);
  int won = 0;
  for (const double end = now() + seconds; !won && until(end);) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr*)&address, sizeof address) == 0) {
      struct sockaddr_in peer;
      length = sizeof peer;
      getpeername(fd, (struct sockaddr*)&peer, &length);
      won = peer.sin_port == outside_port;
      const int server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
      if (server >= 0) close(server);
    }
    close(fd);
  }
  stop = 1;
  pthread_join(other, NULL);
  return won ? worked : lost();
}

#define ANY "EACCES"
const struct victim race_victims[] = {
    {"race-flip-read", "openat", ANY, is_race | quiet | of_secrets, flip_read},
    {"race-flip-write", "openat", ANY, is_race | quiet, flip_write},
    {"race-flip-remove", "unlink", ANY, is_race | quiet, flip_remove},
    {"race-flip-chmod", "chmod", ANY, is_race | quiet, flip_chmod},
    {"race-swap-create", "openat", ANY, is_race | quiet, swap_create},
    {"race-swap-write", "openat", ANY, is_race | quiet, swap_write},
    {"race-swap-remove", "unlink", ANY, is_race | quiet, swap_remove},
    {"race-swap-rename", "rename", ANY, is_race | quiet, swap_rename},
    {"race-swap-mkdir", "mkdir", ANY, is_race | quiet, swap_mkdir},
    {"race-swap-read", "openat", ANY, is_race | quiet | of_secrets, swap_read},
    {"race-cwd-create", "openat", ANY, is_race | quiet, cwd_create},
    {"race-dirfd-create", "openat", ANY, is_race | quiet, dirfd_create},
    {"race-fd-chmod", "fchmod", ANY, is_race | quiet, descriptor_chmod},
    {"race-flip-connect", "connect", ANY, is_race | quiet, flip_connect},
    {0},
};
