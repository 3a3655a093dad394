/* Victims: small programs that each try one forbidden thing.
 *
 *   victims list                       one line a victim: name, system calls, errors, flags
 *   victims hold WORLD                 the outside: a process with files, sockets, memory, a
 *                                      terminal; writes WORLD/facts, then "ready" to stdout, and
 *                                      lives until its standard input ends
 *   victims NAME WORLD [SECONDS]       tries it; SECONDS bounds the races (default 2)
 *   victims each WORLD SECONDS NAME... tries several, each in a process and directory of its own;
 *                                      prints NAME, pid, status and words, separated by tabs
 *
 * Exit status: 0 it WORKED (bad inside a session), 10 refused (the error's name is printed),
 * 20 it could not be tried (the reason is printed). Natively, outside a session, a victim must
 * work, so that a refusal means something; the flags say who can make it work natively.
 *
 * The working directory is the project: victims write their own scratch files there. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum status { worked = 0, refused = 10, untried = 20 };

enum flag {
  by_gate = 1,      /* trapped: the log must hold a `refused` entry of this process */
  by_filter = 2,    /* answered by the filter or Landlock: no entry */
  needs_root = 4,   /* natively works for root alone */
  needs_user = 8,   /* natively not tried as root: it would touch other programs */
  not_native = 16,  /* natively there is nothing to reach; `errors` is all the test */
  is_race = 32,     /* takes SECONDS */
  quiet = 64,       /* inside, the call itself may succeed; only the effect outside counts */
  of_secrets = 128, /* aims at the secret, not at the files of the world */
};

struct victim {
  const char* name;
  const char* calls;  /* names of system calls, separated by blanks: compared with syscalls.def */
  const char* errors; /* what may be answered inside, separated by blanks */
  unsigned flags;
  int (*run)(void);
};

/* Tables of the groups, each ended by a row without a name. */
extern const struct victim kernel_victims[];
extern const struct victim descriptor_victims[];
extern const struct victim socket_victims[];
extern const struct victim process_victims[];
extern const struct victim ipc_victims[];
extern const struct victim procfs_victims[];
extern const struct victim terminal_victims[];
extern const struct victim race_victims[];

/* The matrix of file operations and argument forms; its rows are named OPERATION/FORM. */
void list_files(void (*each)(const struct victim*));
int run_file(const char* name); /* -1: no such row */

/* The world, from the command line. */
extern const char* world; /* absolute path */
extern double seconds;
const char* fact(const char* key); /* a value of WORLD/facts; ends as untried when missing */
long fact_number(const char* key);
const char* in_world(const char* name); /* WORLD/NAME in a static buffer (eight in turn) */
char* format(const char* text, ...) __attribute__((format(printf, 1, 2))); /* likewise */

/* The outside process notes what reaches it in WORLD/events: true when `word` comes within a
 * second or so. */
int event_came(const char* word);

/* result >= 0: worked; else refused with the name of errno. */
int outcome(long result);
/* As outcome, but an error that is not one of `errors` means that the call reached the kernel:
 * for calls that natively fail too, on purpose, by their arguments. */
int probe(long result, const char* errors);
int says_refused(int error);
int could_not(const char* why); /* prints the reason and errno, returns untried */

/* Scratch of the victim, in the working directory. */
int write_file(const char* path, const char* text); /* -1 on error */
int same_file_text(const char* path, const char* text);
double now(void);

int hold(void); /* hold.c */
