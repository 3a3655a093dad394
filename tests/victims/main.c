#define _GNU_SOURCE
#include "victim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const char* world;
double seconds = 2;

static const struct victim* const tables[] = {
    kernel_victims, descriptor_victims, socket_victims,   process_victims,
    ipc_victims,    procfs_victims,     terminal_victims, race_victims,
};

char* format(const char* text, ...) {
  static char buffers[8][PATH_MAX + 256];
  static unsigned turn;
  char* buffer = buffers[turn++ % 8];
  va_list args;
  va_start(args, text);
  vsnprintf(buffer, sizeof buffers[0], text, args);
  va_end(args);
  return buffer;
}

const char* in_world(const char* name) {
  return format("%s/%s", world, name);
}

static char* read_text(const char* path) {
  static char text[65536];
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return NULL;
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  text[n < 0 ? 0 : n] = 0;
  return text;
}

const char* fact(const char* key) {
  static char facts[65536];
  if (facts[0] == 0) {
    const char* text = read_text(in_world("facts"));
    if (text == NULL) exit(could_not("no facts of the world"));
    snprintf(facts, sizeof facts, "%s", text);
  }
  const size_t length = strlen(key);
  for (const char* line = facts; line != NULL && *line != 0;) {
    const char* end = strchr(line, '\n');
    if (end == NULL) end = line + strlen(line);
    if (strncmp(line, key, length) == 0 && line[length] == '=')
      return format("%.*s", (int)(end - line - (long)length - 1), line + length + 1);
    line = *end == 0 ? NULL : end + 1;
  }
  errno = 0;
  exit(could_not(format("the world has no %s", key)));
}

long fact_number(const char* key) {
  return strtol(fact(key), NULL, 0);
}

double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int event_came(const char* word) {
  const double until = now() + 0.7;
  const char* wanted = format("%s\n", word);
  do {
    const char* text = read_text(in_world("events"));
    if (text != NULL && strstr(text, wanted) != NULL) return 1;
    usleep(10000);
  } while (now() < until);
  return 0;
}

int says_refused(int error) {
  const char* name = strerrorname_np(error);
  printf("%s\n", name != NULL ? name : "?");
  return refused;
}

int outcome(long result) {
  return result >= 0 ? worked : says_refused(errno);
}

int probe(long result, const char* errors) {
  if (result >= 0) return worked;
  const char* name = strerrorname_np(errno);
  if (name != NULL && strstr(format(" %s ", errors), format(" %s ", name)) != NULL)
    return says_refused(errno);
  fprintf(stderr, "reached the kernel: %s\n", name);
  return worked;
}

int could_not(const char* why) {
  printf("%s%s%s\n", why, errno != 0 ? ": " : "", errno != 0 ? strerror(errno) : "");
  return untried;
}

int write_file(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return -1;
  const ssize_t n = write(fd, text, strlen(text));
  close(fd);
  return n == (ssize_t)strlen(text) ? 0 : -1;
}

int same_file_text(const char* path, const char* text) {
  const char* found = read_text(path);
  return found != NULL && strcmp(found, text) == 0;
}

static void print_row(const struct victim* v) {
  static const char* const names[] = {"gate",       "filter", "root",  "user",
                                      "not-native", "race",   "quiet", "reads"};
  printf("%s\t%s\t%s\t", v->name, v->calls, v->errors);
  const char* comma = "";
  for (unsigned i = 0; i < 8; ++i)
    if (v->flags & (1U << i)) {
      printf("%s%s", comma, names[i]);
      comma = ",";
    }
  printf("\n");
}

static int list(void) {
  for (size_t t = 0; t < sizeof tables / sizeof *tables; ++t)
    for (const struct victim* v = tables[t]; v->name != NULL; ++v) print_row(v);
  list_files(print_row);
  return 0;
}

static int run(const char* name) {
  for (size_t t = 0; t < sizeof tables / sizeof *tables; ++t)
    for (const struct victim* v = tables[t]; v->name != NULL; ++v)
      if (strcmp(v->name, name) == 0) return v->run();
  const int status = run_file(name);
  if (status >= 0) return status;
  fprintf(stderr, "victims: no victim is called %s\n", name);
  return 2;
}

/* One victim in a process, a directory and with an output of its own. */
static void run_apart(const char* name) {
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) exit(could_not("pipe"));
  fflush(stdout);
  const pid_t pid = fork();
  if (pid < 0) exit(could_not("fork"));
  if (pid == 0) {
    char scratch[] = "victim-XXXXXX";
    alarm((unsigned)seconds + 20);
    dup2(out[1], 1);
    if (mkdtemp(scratch) == NULL || chdir(scratch) != 0) exit(could_not("scratch directory"));
    exit(run(name));
  }
  close(out[1]);
  char words[256] = "";
  size_t n = 0;
  for (ssize_t got;
       n < sizeof words - 1 && (got = read(out[0], words + n, sizeof words - 1 - n)) > 0;)
    n += (size_t)got;
  close(out[0]);
  for (char* c = words; *c != 0; ++c)
    if (*c == '\n' || *c == '\t') *c = ' ';
  int status;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    printf("%s\t%d\tsignal\t%s\n", name, pid, strsignal(WTERMSIG(status)));
  else
    printf("%s\t%d\t%d\t%s\n", name, pid, WEXITSTATUS(status), words);
}

int main(int argc, char** argv) {
  static char absolute[PATH_MAX];
  if (argc == 2 && strcmp(argv[1], "list") == 0) return list();
  if (argc < 3 || realpath(argv[2], absolute) == NULL) {
    fprintf(stderr, "usage: victims list | hold WORLD | NAME WORLD [SECONDS] | "
                    "each WORLD SECONDS NAME...\n");
    return 2;
  }
  world = absolute;
  if (strcmp(argv[1], "hold") == 0) return hold();
  if (argc > 3) seconds = atof(argv[3]);
  if (strcmp(argv[1], "each") != 0) return run(argv[1]);
  for (int i = 4; i < argc; ++i) run_apart(argv[i]);
  return 0;
}
