// open_close PATH (ro|rw|missing): nanoseconds for open+close of PATH, the median of 9 rounds.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { rounds = 9, calls = 1000 };

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int missing = strcmp(argv[2], "missing") == 0;
  const int flags = strcmp(argv[2], "rw") == 0 ? O_RDWR : O_RDONLY;
  double each[rounds];
  for (int round = -1; round < rounds; ++round) { // round -1 warms up
    const double begun = now_ns();
    for (int i = 0; i < calls; ++i) {
      const int fd = open(argv[1], flags | O_CLOEXEC);
      if (missing ? fd >= 0 || errno != ENOENT : fd < 0) {
        perror(argv[1]);
        return 1;
      }
      if (fd >= 0) close(fd);
    }
    if (round >= 0) each[round] = (now_ns() - begun) / calls;
  }
  qsort(each, rounds, sizeof each[0], ascending);
  printf("%.0f\n", each[rounds / 2]);
  return 0;
}
