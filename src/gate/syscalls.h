// Lookup in the table of system calls (syscalls.def): what the filter does with each, how the gate
// decodes the trapped ones.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "os/seccomp_filter.h"

namespace nd7 {

enum class Treatment : std::uint8_t { pass, trap, refuse, rules };

// One per way of decoding and performing; the gate has a function for each.
enum class Family : std::uint8_t {
  none,
  open,
  creat,
  mkdir,
  remove,
  rename,
  link,
  symlink,
  mknod,
  truncate,
  chmod,
  chown,
  utime,
  setxattr,
  removexattr,
  fchmod,
  fchown,
  fsetxattr,
  fremovexattr,
  exec,
  socket,
  socketpair,
  connect,
  bind,
  listen,
  kill,
  tkill,
  tgkill,
  sigqueue,
  pidfd_signal,
  foreign_pid,
  priority,
  credentials,
  prctl,
  setown,
  ioctl,
  ipc_get,
  ipc_use,
  mq,
  inner_landlock,
};

struct CallRow {
  int number;
  std::string_view name;
  Treatment treatment;
  int error; // for refuse
  Family family;
  std::string_view note;
};

// Sorted by number.
std::span<const CallRow> call_table();
const CallRow* find_call(int number);

// What this kernel covers by itself, so that the filter need not trap it.
struct FilterFacts {
  bool signals_scoped = false; // Landlock ABI 6
};
std::vector<os::FilterRow> filter_rows(const FilterFacts& facts);

} // namespace nd7
