// Landlock: rights of each ABI as rows of data, a pure downgrade, and applying a ruleset.
//
// Takes values, holds no opinion about which paths matter. What Landlock does not see, and who
// catches it instead: chmod, chown, times, extended attributes, ioctls on ordinary files, stat and
// readlink, unix sockets by path (before ABI 9), UDP, descriptors opened elsewhere: all by the
// gate. Source: landlock(7), Documentation/userspace-api/landlock.rst.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace nd7::os {

// File rights (linux/landlock.h has those of ABI 1 and 2 only on Debian 12).
namespace landlock_fs {
inline constexpr std::uint64_t execute = 1U << 0, write_file = 1U << 1, read_file = 1U << 2,
                               read_dir = 1U << 3, remove_dir = 1U << 4, remove_file = 1U << 5,
                               make_char = 1U << 6, make_dir = 1U << 7, make_reg = 1U << 8,
                               make_sock = 1U << 9, make_fifo = 1U << 10, make_block = 1U << 11,
                               make_sym = 1U << 12, refer = 1U << 13, truncate = 1U << 14,
                               ioctl_dev = 1U << 15;
}
namespace landlock_net {
inline constexpr std::uint64_t bind_tcp = 1U << 0, connect_tcp = 1U << 1;
}
namespace landlock_scope {
inline constexpr std::uint64_t abstract_unix_socket = 1U << 0, signal = 1U << 1;
}

struct LandlockAbi {
  int version;
  const char* kernel; // first release
  std::uint64_t fs, net, scope;
  std::uint32_t size_bytes; // of struct landlock_ruleset_attr that this ABI knows
  const char* adds;         // for doctor
};
std::span<const LandlockAbi> landlock_abis(); // versions 1 to 7, ascending

struct LandlockPath {
  std::string path;
  std::uint64_t rights;
};

struct LandlockRuleset {
  std::uint64_t fs = 0, net = 0, scope = 0; // handled: refused unless a rule grants
  std::vector<LandlockPath> paths;
};

// What is left of a ruleset on an older ABI, and in words what is not enforced there. Pure. On a
// kernel newer than the table, the newest row is used.
struct Downgraded {
  LandlockRuleset ruleset;
  const LandlockAbi* abi = nullptr;
  std::vector<std::string> lost;
};
Downgraded downgrade(const LandlockRuleset& wanted, int abi);

// The kernel's ABI; 0 when Landlock is absent or off. ND7_LANDLOCK_ABI is not read here: forcing an
// ABI down is a start option of tests, passed as a value.
int landlock_abi();

// Makes the ruleset's descriptor (in the parent, where allocation is fine). Paths that do not exist
// or lie on a pseudo file system are skipped and named in `skipped`.
Result<Fd> make_ruleset(const Downgraded& ruleset, std::vector<std::string>* skipped);
// restrict_self; needs no_new_privs; allocates nothing. 0 or -1 with errno.
int restrict_self(int ruleset_fd);

} // namespace nd7::os
