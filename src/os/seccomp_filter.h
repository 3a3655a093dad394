// A table of system calls as a seccomp program, and an evaluator for tests.
//
// Pure but for apply(): rows in, classic BPF out. The program checks the architecture, refuses the
// x32 range, finds the row by binary search and runs its argument rules in order; the first rule
// whose tests all match gives the answer, else the row's own. A number without a row is answered
// with ENOSYS: a call newer than the table is refused, not let through.
// Source: seccomp(2), Documentation/userspace-api/seccomp_filter.rst.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <linux/filter.h>

#include "base/fd.h"
#include "base/result.h"

namespace nd7::os {

struct FilterAction {
  enum Kind : std::uint8_t { allow, notify, refuse } kind = refuse;
  int error = 0; // for refuse; 0 answers success without doing anything
  friend bool operator==(const FilterAction&, const FilterAction&) = default;
};

// (args[index] & mask) == value, on the low 32 bits, or on all 64 where wide.
struct ArgTest {
  std::uint8_t index = 0;
  std::uint64_t mask = 0xffffffff;
  std::uint64_t value = 0;
  bool wide = false;
  bool negate = false;
};

struct ArgRule {
  std::vector<ArgTest> all; // every test must hold
  FilterAction then;
};

struct FilterRow {
  int number = 0;
  FilterAction action;
  std::vector<ArgRule> rules;
};

// Rows need not be sorted; numbers must be unique. Errors: two rows for a number, program too long
// (BPF_MAXINSNS).
Result<std::vector<sock_filter>> build_filter(std::vector<FilterRow> rows);

// What the program answers, by interpreting it: for tests.
FilterAction evaluate_filter(std::span<const sock_filter> program, std::uint32_t arch, int number,
                             const std::uint64_t (&args)[6]);
std::uint32_t native_arch();

// Installs the program on the calling thread with a listener and WAIT_KILLABLE_RECV. Needs
// no_new_privs. Allocates nothing: for use between fork and exec. Returns the listener's number or
// -1 with errno.
int install_filter(const sock_filter* program, unsigned short length);

} // namespace nd7::os
