#include "gate/plan_policy.h"

#include <optional>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "core/chain.h"
#include "core/mount_alias.h"
#include "os/files.h"
#include "os/resolve.h"

namespace nd7 {
namespace {

constexpr std::size_t policy_bytes_max = std::size_t{1} << 20;
constexpr std::size_t mountinfo_bytes_max = std::size_t{16} << 20;

// Nothing when there is no such file. Only a regular file is read: a FIFO would keep us waiting.
Result<std::optional<std::string>> content_of(const std::string& path) {
  struct stat st {};
  if (stat(path.c_str(), &st) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return os_error(path);
  }
  if (!S_ISREG(st.st_mode)) return fail(fmt::format("{}: not a regular file", visible(path)));
  auto text = os::read_file(path, policy_bytes_max);
  if (!text) return std::unexpected(text.error());
  return std::optional(std::move(*text));
}

Result<> add_file(const PolicyFilesInput& input, const std::string& path, PolicySource source,
                  std::string_view text, Policy& policy, PolicySettings& settings) {
  auto file = parse_policy(text, path, source);
  if (!file) return std::unexpected(file.error());
  const std::size_t before = policy.rules.size();
  if (auto ok = apply_policy(*file, {input.home, input.project, input.profile}, policy, settings);
      !ok)
    return ok;
  // Decisions are made on resolved paths: what is written here may lead elsewhere by a link.
  for (std::size_t i = before; i < policy.rules.size(); ++i) {
    Rule& rule = policy.rules[i];
    std::string& place =
        rule.shape == Shape::glob || rule.shape == Shape::suffix ? rule.scope : rule.path;
    if (!place.empty()) place = os::resolved_as_far(place);
  }
  return {};
}

std::string trust_file(const std::string& state, const std::string& path,
                       std::string_view content) {
  std::string both = path;
  both += '\0';
  both += content;
  return state + "/trusted/" + blake3_hex(both);
}

} // namespace

Result<PolicySettings> add_policy_files(const PolicyFilesInput& input, Policy& policy) {
  PolicySettings settings;
  const std::string own = input.config + "/policy.toml";
  auto text = content_of(own);
  if (!text) return std::unexpected(text.error());
  // An empty one still answers whether the profile exists.
  if (*text || !input.profile.empty())
    if (auto ok =
            add_file(input, own, PolicySource::policy_file, text->value_or(""), policy, settings);
        !ok)
      return std::unexpected(ok.error());
  const std::string project = input.project + "/.nd7.toml";
  text = content_of(project);
  if (!text) return std::unexpected(text.error());
  if (*text) {
    const PolicySource source = is_trusted(input.state, project, **text)
                                    ? PolicySource::trusted_project_file
                                    : PolicySource::project_file;
    if (auto ok = add_file(input, project, source, **text, policy, settings); !ok)
      return std::unexpected(ok.error());
  }
  return settings;
}

Result<> add_mount_aliases(Policy& policy) {
  auto text = os::read_file("/proc/self/mountinfo", mountinfo_bytes_max);
  if (!text) return std::unexpected(text.error());
  policy.rules = with_mount_aliases(policy.rules, parse_mountinfo(*text));
  return {};
}

bool is_trusted(const std::string& state, const std::string& path, std::string_view content) {
  struct stat st {};
  return lstat(trust_file(state, path, content).c_str(), &st) == 0 && S_ISREG(st.st_mode) &&
         st.st_uid == geteuid();
}

Result<> set_trusted(const std::string& state, const std::string& path, std::string_view content) {
  if (auto ok = os::make_private_directory(state + "/trusted"); !ok) return ok;
  return os::replace_file(trust_file(state, path, content), path + "\n");
}

} // namespace nd7
