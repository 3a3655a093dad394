#include "os/landlock.h"

#include <algorithm>
#include <array>

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

namespace nd7::os {
namespace {

struct RulesetAttr { // the header's own knows only the first member
  std::uint64_t handled_access_fs;
  std::uint64_t handled_access_net;
  std::uint64_t scoped;
};

constexpr std::uint64_t fs_abi1 = (1U << 13) - 1;
constexpr std::uint64_t fs_abi2 = fs_abi1 | landlock_fs::refer;
constexpr std::uint64_t fs_abi3 = fs_abi2 | landlock_fs::truncate;
constexpr std::uint64_t fs_abi5 = fs_abi3 | landlock_fs::ioctl_dev;
constexpr std::uint64_t net_abi4 = landlock_net::bind_tcp | landlock_net::connect_tcp;
constexpr std::uint64_t scope_abi6 = landlock_scope::abstract_unix_socket | landlock_scope::signal;

constexpr std::array<LandlockAbi, 7> abis{{
    {1, "5.13", fs_abi1, 0, 0, 8, "file access"},
    {2, "5.19", fs_abi2, 0, 0, 8, "rename and link between directories"},
    {3, "6.2", fs_abi3, 0, 0, 8, "truncation"},
    {4, "6.7", fs_abi3, net_abi4, 0, 16, "TCP bind and connect"},
    {5, "6.10", fs_abi5, net_abi4, 0, 16, "device ioctls"},
    {6, "6.12", fs_abi5, net_abi4, scope_abi6, 24, "signals and abstract sockets"},
    {7, "6.15", fs_abi5, net_abi4, scope_abi6, 24, "audit records of denials"},
}};

} // namespace

std::span<const LandlockAbi> landlock_abis() {
  return abis;
}

Downgraded downgrade(const LandlockRuleset& wanted, int abi) {
  Downgraded out;
  out.ruleset = wanted;
  for (const LandlockAbi& row : abis)
    if (row.version <= abi) out.abi = &row;
  const LandlockAbi none{0, "", 0, 0, 0, 0, ""};
  const LandlockAbi& known = out.abi != nullptr ? *out.abi : none;
  for (const LandlockAbi& row : abis) {
    if (row.version <= known.version) continue;
    const LandlockAbi& before =
        row.version > 1 ? abis[static_cast<std::size_t>(row.version) - 2] : none;
    if ((wanted.fs & row.fs & ~before.fs) != 0 || (wanted.net & row.net & ~before.net) != 0 ||
        (wanted.scope & row.scope & ~before.scope) != 0)
      out.lost.push_back(
          fmt::format("{} (Landlock ABI {}, Linux {})", row.adds, row.version, row.kernel));
  }
  out.ruleset.fs &= known.fs;
  out.ruleset.net &= known.net;
  out.ruleset.scope &= known.scope;
  for (LandlockPath& path : out.ruleset.paths) path.rights &= known.fs;
  return out;
}

int landlock_abi() {
  const long abi =
      syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return abi > 0 ? static_cast<int>(abi) : 0;
}

Result<Fd> make_ruleset(const Downgraded& ruleset, std::vector<std::string>* skipped) {
  if (ruleset.abi == nullptr) return fail("this kernel has no Landlock");
  const RulesetAttr attr{ruleset.ruleset.fs, ruleset.ruleset.net, ruleset.ruleset.scope};
  Fd fd(static_cast<int>(syscall(SYS_landlock_create_ruleset, &attr, ruleset.abi->size_bytes, 0)));
  if (!fd) return os_error("landlock_create_ruleset");
  constexpr std::uint64_t of_files = landlock_fs::execute | landlock_fs::write_file |
                                     landlock_fs::read_file | landlock_fs::truncate |
                                     landlock_fs::ioctl_dev;
  for (const LandlockPath& path : ruleset.ruleset.paths) {
    const Fd at(::open(path.path.c_str(), O_PATH | O_CLOEXEC));
    struct stat st {};
    if (!at || fstat(at.get(), &st) != 0) {
      if (skipped != nullptr) skipped->push_back(path.path);
      continue;
    }
    landlock_path_beneath_attr rule{};
    rule.allowed_access = S_ISDIR(st.st_mode) ? path.rights : path.rights & of_files;
    rule.parent_fd = at.get();
    if (rule.allowed_access == 0) continue;
    if (syscall(SYS_landlock_add_rule, fd.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) {
      if (errno == EBADFD || errno == EINVAL) { // pipefs and the like take no rules
        if (skipped != nullptr) skipped->push_back(path.path);
        continue;
      }
      return os_error(fmt::format("landlock rule for {}", path.path));
    }
  }
  return fd;
}

int restrict_self(int ruleset_fd) {
  return static_cast<int>(syscall(SYS_landlock_restrict_self, ruleset_fd, 0));
}

} // namespace nd7::os
