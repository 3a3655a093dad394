// The recipe of confinement: what a session's first process does between fork and exec.
//
// The plan is made in the supervisor, where allocation and errors are easy; enter() runs in the
// child and only applies it. The order matters: capabilities, no_new_privs, Landlock, filter, exec.
#pragma once

#include <array>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include <linux/filter.h>
#include <sys/resource.h>

#include "base/fd.h"
#include "base/result.h"
#include "os/landlock.h"

namespace nd7 {

// Capabilities that a session of root keeps at most: what acts on files only.
std::uint64_t kept_capabilities();
// Drops this thread's (or single-threaded process's) capabilities to these; bounding set too.
Result<> keep_capabilities(std::uint64_t kept);

struct Domain {
  Fd ruleset;
  std::vector<sock_filter> filter;
  std::uint64_t capabilities = 0; // kept; 0 for an ordinary user
  std::string program;            // absolute
  std::vector<std::string> argv;
  std::vector<std::string> environment;
  std::array<bool, 65> ignored{}; // signals that were ignored at the start (nohup)
  sigset_t mask{};                // and those that were blocked
  rlimit files{};                 // RLIMIT_NOFILE as the user had it
};

// Runs in the child. `channel` is a unix socket to the supervisor: the listener goes there by
// SCM_RIGHTS, one byte comes back when receivers are ready. Never returns; a failure is written to
// the channel as one line "step: errno".
[[noreturn]] void enter(const Domain& domain, int channel, pid_t supervisor);

} // namespace nd7
