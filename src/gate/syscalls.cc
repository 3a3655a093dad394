#include "gate/syscalls.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <linux/fs.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "os/kernel_abi.h"

namespace nd7 {
namespace {

// The rows of syscalls.def as a constexpr array. A legacy call that this architecture lacks has no
// __NR_ constant; its row is dropped by the #ifdef'd number below.
constexpr int absent = -1;

#include "gate/legacy_numbers.h"

constexpr int refuse_error(int error) {
  return error;
}

struct RawRow {
  int number;
  std::string_view name;
  Treatment treatment;
  int error;
  Family family;
  std::string_view note;
};

struct Mark {
  Treatment treatment;
  int error;
};
constexpr Mark pass{Treatment::pass, 0};
constexpr Mark trap{Treatment::trap, 0};
constexpr Mark rules{Treatment::rules, 0};
constexpr Mark refuse(int error) {
  return {Treatment::refuse, refuse_error(error)};
}

#define CALL(name, mark, family, note)                                                             \
  RawRow{__NR_##name, #name, (mark).treatment, (mark).error, Family::family, note},
#define LEGACY(name, mark, family, note)                                                           \
  RawRow{legacy_##name, #name, (mark).treatment, (mark).error, Family::family, note},
#define PASS(name) RawRow{__NR_##name, #name, Treatment::pass, 0, Family::none, ""},
#define PASS_LEGACY(name) RawRow{legacy_##name, #name, Treatment::pass, 0, Family::none, ""},
constexpr RawRow raw_rows[] = {
#include "gate/syscalls.def"
};
#undef CALL
#undef LEGACY
#undef PASS
#undef PASS_LEGACY

constexpr std::size_t present_count() {
  std::size_t n = 0;
  for (const RawRow& row : raw_rows) n += row.number != absent ? 1 : 0;
  return n;
}

constexpr auto sorted_rows() {
  std::array<CallRow, present_count()> out{};
  std::size_t n = 0;
  for (const RawRow& row : raw_rows)
    if (row.number != absent)
      out[n++] = {row.number, row.name, row.treatment, row.error, row.family, row.note};
  std::sort(out.begin(), out.end(),
            [](const CallRow& a, const CallRow& b) { return a.number < b.number; });
  return out;
}

constexpr auto table = sorted_rows();

constexpr bool unique() {
  for (std::size_t i = 1; i < table.size(); ++i)
    if (table[i].number == table[i - 1].number) return false;
  return true;
}
static_assert(unique(), "a system call has two rows in syscalls.def");

using os::ArgRule;
using os::ArgTest;
using os::FilterAction;

constexpr FilterAction act_pass{FilterAction::allow, 0};
constexpr FilterAction act_trap{FilterAction::notify, 0};
FilterAction act_refuse(int error) {
  return {FilterAction::refuse, error};
}

template <class T> ArgTest masked(unsigned index, std::uint64_t mask, T value) {
  return {static_cast<std::uint8_t>(index), mask, static_cast<std::uint32_t>(value), false, false};
}
template <class T> ArgTest equals(unsigned index, T value) {
  return masked(index, 0xffffffff, value);
}
ArgTest any_of(unsigned index, std::uint64_t mask) { // at least one bit of mask is set
  return {static_cast<std::uint8_t>(index), mask, 0, false, true};
}

constexpr std::uint64_t type_mask = 0xf; // SOCK_NONBLOCK and SOCK_CLOEXEC lie above
constexpr std::uint64_t namespace_flags = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                          CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                                          CLONE_NEWNET;

// ioctl commands that change an inode through any descriptor: decided on the object and performed.
constexpr std::uint32_t inode_commands[] = {
    FS_IOC_SETFLAGS, FS_IOC32_SETFLAGS, FS_IOC_FSSETXATTR, FS_IOC_SETVERSION, FS_IOC32_SETVERSION,
};
// Refused outright: file system administration, console and terminal tricks. The low 32 bits are
// compared, which is all the kernel looks at.
struct RefusedCommand {
  std::uint32_t command;
  int error;
};
constexpr RefusedCommand refused_commands[] = {
    {TIOCSTI, EPERM},    // types into the terminal
    {0x541c, EPERM},     // TIOCLINUX: console paste
    {TIOCCONS, EPERM},   // redirects the console
    {0x5441, EINVAL},    // TIOCGPTPEER: libraries fall back to opening the name
    {0x40806685, EPERM}, // FS_IOC_ENABLE_VERITY
    {0x800c6613, EPERM}, // FS_IOC_SET_ENCRYPTION_POLICY
    {0xc0506617, EPERM}, // FS_IOC_ADD_ENCRYPTION_KEY
    {0xc0406618, EPERM}, // FS_IOC_REMOVE_ENCRYPTION_KEY
    {0x40047211, EPERM}, // FAT_IOCTL_SET_ATTRIBUTES
    {FIFREEZE, EPERM},   {FITHAW, EPERM}, {FITRIM, EPERM}, {FIBMAP, EPERM},
};

std::vector<ArgRule> rules_of(int number, const FilterFacts& facts, FilterAction& otherwise) {
  otherwise = act_trap;
  std::vector<ArgRule> out;
  const FilterAction scoped = facts.signals_scoped ? act_pass : act_trap;
  switch (number) {
#ifdef __NR_open
  case __NR_open:
    out.push_back({{masked(1, O_PATH, O_PATH)}, act_pass});
    break;
#endif
  case __NR_openat:
    out.push_back({{masked(2, O_PATH, O_PATH)}, act_pass});
    break;
  case __NR_socket:
  case __NR_socketpair:
    for (const int type : {SOCK_STREAM, SOCK_SEQPACKET})
      out.push_back({{equals(0, AF_UNIX), masked(1, type_mask, type)}, act_pass});
    if (number == __NR_socketpair) break;
    for (const int domain : {AF_INET, AF_INET6}) {
      for (const int protocol : {0, static_cast<int>(IPPROTO_TCP)})
        out.push_back({{equals(0, domain), masked(1, type_mask, SOCK_STREAM), equals(2, protocol)},
                       act_pass});
      out.push_back(
          {{equals(0, domain), equals(2, 262 /* IPPROTO_MPTCP */)}, act_refuse(EPROTONOSUPPORT)});
    }
    out.push_back({{equals(0, AF_NETLINK), equals(2, 0 /* NETLINK_ROUTE */)}, act_pass});
    break;
  case __NR_sendto:
  case __NR_sendmmsg:
    out.push_back({{any_of(3, MSG_FASTOPEN)}, act_refuse(EOPNOTSUPP)});
    otherwise = act_pass;
    break;
  case __NR_sendmsg:
    out.push_back({{any_of(2, MSG_FASTOPEN)}, act_refuse(EOPNOTSUPP)});
    otherwise = act_pass;
    break;
  case __NR_tkill:
  case __NR_tgkill:
  case __NR_rt_sigqueueinfo:
  case __NR_rt_tgsigqueueinfo:
  case __NR_pidfd_send_signal:
    otherwise = scoped;
    break;
  case __NR_prlimit64:
  case __NR_sched_setaffinity:
  case __NR_sched_setparam:
  case __NR_sched_setscheduler:
  case __NR_sched_setattr:
    out.push_back({{equals(0, 0)}, act_pass});
    break;
  case __NR_setpriority:
    out.push_back({{equals(0, 0 /* PRIO_PROCESS */), equals(1, 0)}, act_pass});
    break;
  case __NR_ioprio_set:
    out.push_back({{equals(0, 1 /* IOPRIO_WHO_PROCESS */), equals(1, 0)}, act_pass});
    break;
  case __NR_prctl:
    out.push_back({{equals(0, PR_SET_DUMPABLE), equals(1, 0)}, act_refuse(0)});
    for (const int option : {PR_CAPBSET_DROP, PR_SET_SECUREBITS, PR_CAP_AMBIENT, PR_SET_KEEPCAPS})
      out.push_back({{equals(0, option)}, act_trap});
    otherwise = act_pass;
    break;
  case __NR_fcntl:
    for (const int command : {F_SETOWN, F_SETOWN_EX}) out.push_back({{equals(1, command)}, scoped});
    otherwise = act_pass;
    break;
  case __NR_ioctl:
    for (const RefusedCommand& row : refused_commands)
      out.push_back({{equals(1, row.command)}, act_refuse(row.error)});
    for (const std::uint32_t command : inode_commands)
      out.push_back({{equals(1, command)}, act_trap});
    for (const int command : {TIOCSPGRP, TIOCSETD}) out.push_back({{equals(1, command)}, act_trap});
    for (const int command : {FIOSETOWN, SIOCSPGRP}) out.push_back({{equals(1, command)}, scoped});
    // The btrfs command type: cloning file contents passes (it needs a writable descriptor), the
    // rest makes and removes subvolumes and snapshots through read-only directory descriptors.
    for (const std::uint32_t command : {0x40049409U, 0x4020940dU, 0xc0189436U})
      out.push_back({{equals(1, command)}, act_pass});
    out.push_back({{masked(1, 0xff00, 0x9400)}, act_refuse(EPERM)});
    // Encryption, ext4 and f2fs administration share type 'f'; reads of flags pass.
    for (const std::uint32_t command :
         {0x80086601U, 0x80046601U, 0xc020660bU, 0x80087601U, 0x8004587dU})
      out.push_back({{equals(1, command)}, act_pass});
    out.push_back({{masked(1, 0xff00, 0x6600)}, act_refuse(ENOTTY)});
    otherwise = act_pass;
    break;
  case __NR_seccomp:
    out.push_back({{any_of(1, SECCOMP_FILTER_FLAG_NEW_LISTENER)}, act_refuse(EBUSY)});
    otherwise = act_pass;
    break;
  case __NR_clone:
    out.push_back({{any_of(0, namespace_flags)}, act_refuse(EPERM)});
    otherwise = act_pass;
    break;
  case __NR_unshare:
    out.push_back({{any_of(0, namespace_flags | 0x80 /* CLONE_NEWTIME */)}, act_refuse(EPERM)});
    otherwise = act_pass;
    break;
  case __NR_adjtimex:
  case __NR_clock_adjtime:
    otherwise = act_pass;
    break; // setting needs CAP_SYS_TIME, never kept
  default:
    break;
  }
  return out;
}

} // namespace

std::span<const CallRow> call_table() {
  return table;
}

const CallRow* find_call(int number) {
  const auto at = std::lower_bound(table.begin(), table.end(), number,
                                   [](const CallRow& row, int n) { return row.number < n; });
  return at != table.end() && at->number == number ? &*at : nullptr;
}

std::vector<os::FilterRow> filter_rows(const FilterFacts& facts) {
  std::vector<os::FilterRow> out;
  out.reserve(table.size());
  for (const CallRow& row : table) {
    os::FilterRow filter{row.number, {}, {}};
    switch (row.treatment) {
    case Treatment::pass:
      filter.action = act_pass;
      break;
    case Treatment::trap:
      filter.action = act_trap;
      break;
    case Treatment::refuse:
      filter.action = act_refuse(row.error);
      break;
    case Treatment::rules:
      filter.rules = rules_of(row.number, facts, filter.action);
      break;
    }
    out.push_back(std::move(filter));
  }
  return out;
}

} // namespace nd7
