#include "cli/agent_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <memory>

#include "agents/settings_edit.h"
#include "base/bytes.h"
#include "base/json.h"
#include "os/files.h"

namespace nd7 {
namespace {

constexpr std::size_t settings_bytes_max = std::size_t{16} << 20;
constexpr std::size_t diff_cells_max = std::size_t{4} << 20;

std::string variable(const char* name) {
  const char* value = ::getenv(name);
  return value != nullptr ? value : "";
}

std::string resolved(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), ::free);
  return real ? real.get() : std::string();
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Longest common subsequence of lines; falls back to "all changed" when it would cost too much.
std::string line_diff(const std::vector<std::string_view>& a,
                      const std::vector<std::string_view>& b) {
  const std::size_t width = b.size() + 1;
  std::string out;
  const auto put = [&](char sign, std::string_view line) {
    out += fmt::format("{}{}\n", sign, visible(line));
  };
  if ((a.size() + 1) * width > diff_cells_max) {
    for (const std::string_view line : a) put('-', line);
    for (const std::string_view line : b) put('+', line);
    return out;
  }
  std::vector<std::uint32_t> common((a.size() + 1) * width);
  for (std::size_t i = a.size(); i-- > 0;) {
    for (std::size_t j = b.size(); j-- > 0;) {
      common[i * width + j] =
          a[i] == b[j] ? common[(i + 1) * width + j + 1] + 1
                       : std::max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  std::string_view before; // the context line that was not shown yet
  bool has_before = false;
  bool after_change = false;
  for (std::size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      if (after_change) {
        put(' ', a[i]);
        has_before = false;
      } else {
        before = a[i];
        has_before = true;
      }
      after_change = false;
      ++i;
      ++j;
      continue;
    }
    if (has_before) put(' ', before);
    has_before = false;
    after_change = true;
    if (j >= b.size() ||
        (i < a.size() && common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      put('-', a[i++]);
    } else {
      put('+', b[j++]);
    }
  }
  return out;
}

// Writes a new file beside `target` and renames it over it, with the mode and owner of `old`.
Result<> replace_keeping(const std::string& target, std::string_view content,
                         const struct stat& old) {
  const std::string fresh = fmt::format("{}.nd7-{}", target, ::getpid());
  auto fd = os::open_file(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (!fd) return std::unexpected(fd.error());
  const auto write = [&]() -> Result<> {
    if (auto written = os::write_all(fd->get(), content); !written) return written;
    if (old.st_uid != ::geteuid() || old.st_gid != ::getegid()) {
      if (::fchown(fd->get(), old.st_uid, old.st_gid) != 0) return os_error("chown " + fresh);
    }
    if (::fchmod(fd->get(), old.st_mode & 07777) != 0) return os_error("chmod " + fresh);
    if (::fsync(fd->get()) != 0) return os_error("sync " + fresh);
    if (::rename(fresh.c_str(), target.c_str()) != 0) return os_error("rename to " + target);
    return {};
  };
  auto done = write();
  if (!done) ::unlink(fresh.c_str());
  return done;
}

Result<> make_parents(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) return {};
  const std::string parent = path.substr(0, slash);
  struct stat st {};
  if (::stat(parent.c_str(), &st) == 0) return {};
  if (auto above = make_parents(parent); !above) return above;
  if (::mkdir(parent.c_str(), 0700) != 0 && errno != EEXIST) return os_error("mkdir " + parent);
  return {};
}

} // namespace

AgentFiles agent_files(AgentKind kind, const Places& places, const std::string& project) {
  AgentFiles files;
  const AgentRow& agent = agent_row(kind);
  const std::string named = variable(agent.config_variable);
  if (kind == AgentKind::claude) {
    files.directory = !named.empty() ? named : places.home + "/.claude";
    files.user_hooks = files.directory + "/settings.json";
    // Not settings.json, which is shared with others: the path of nd7 is this machine's.
    if (!project.empty()) files.project_hooks = project + "/.claude/settings.local.json";
  } else if (kind == AgentKind::codex) {
    // Codex resolves CODEX_HOME, and takes HOME as it is.
    const std::string home = variable("HOME");
    const std::string real = named.empty() ? std::string() : resolved(named);
    files.directory = !named.empty()                  ? (real.empty() ? named : real)
                      : resolved(home) == places.home ? home + "/.codex"
                                                      : places.home + "/.codex";
    files.user_hooks = files.directory + "/hooks.json";
    files.config = files.directory + "/config.toml";
    if (!project.empty()) files.project_hooks = project + "/.codex/hooks.json";
  }
  return files;
}

Result<std::string> own_program() {
  std::array<char, PATH_MAX> name{};
  const ssize_t size = ::readlink("/proc/self/exe", name.data(), name.size());
  if (size <= 0) return os_error("readlink /proc/self/exe");
  const std::string path(name.data(), static_cast<std::size_t>(size));
  if (path.front() != '/' || ::access(path.c_str(), X_OK) != 0) {
    return fail(fmt::format("the program at {} is not there any more", path));
  }
  if (path.substr(path.rfind('/') + 1) != "nd7") {
    return fail(
        fmt::format("the program is named {}, and its hooks are known by the name nd7", path),
        "rename it to nd7");
  }
  return path;
}

std::string find_on_path(std::string_view name) {
  std::string path = variable("PATH");
  std::string_view rest = path;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string candidate = fmt::format("{}/{}", rest.substr(0, end), name);
    struct stat st {};
    if (candidate.front() == '/' && ::stat(candidate.c_str(), &st) == 0 && S_ISREG(st.st_mode) &&
        ::access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

Result<std::optional<std::string>> read_settings_text(const std::string& path) {
  struct stat st {};
  if (::lstat(path.c_str(), &st) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return os_error("read " + path);
  }
  if (::stat(path.c_str(), &st) != 0) return os_error("read " + path); // a link to nowhere
  if (!S_ISREG(st.st_mode)) return fail(path + " is not a regular file");
  auto text = os::read_file(path, settings_bytes_max);
  if (!text) return std::unexpected(text.error());
  return std::move(*text);
}

Result<> apply_change(const FileChange& change) {
  const auto now = read_settings_text(change.path);
  if (!now) return std::unexpected(now.error());
  if (*now != change.before) {
    return fail(change.path + " was changed by somebody else meanwhile", "run it again");
  }
  if (!change.before) {
    if (!change.after) return {};
    if (auto made = make_parents(change.path); !made) return made;
    return os::replace_file(change.path, *change.after, {.mode = 0600, .replace = false});
  }
  // A link stays one: the change is made where it leads.
  const std::string target = resolved(change.path);
  if (!change.after) {
    if (::unlink(target.c_str()) != 0) return os_error("remove " + target);
    return {};
  }
  struct stat st {};
  if (::stat(target.c_str(), &st) != 0) return os_error("stat " + target);
  return replace_keeping(target, *change.after, st);
}

std::string change_text(const FileChange& change) {
  const std::vector<std::string_view> before =
      lines_of(change.before ? std::string_view(*change.before) : std::string_view());
  const std::vector<std::string_view> after =
      lines_of(change.after ? std::string_view(*change.after) : std::string_view());
  return fmt::format("--- {}\n+++ {}\n", change.before ? visible(change.path) : "/dev/null",
                     change.after ? visible(change.path) : "/dev/null") +
         line_diff(before, after);
}

std::vector<CodexHook> codex_hooks_in(std::string_view text, const std::string& source) {
  std::vector<CodexHook> hooks;
  const auto groups = find_hooks(AgentKind::codex, text);
  if (!groups) return hooks;
  for (const HookGroup& group : *groups) {
    const auto object = scan_json_object(group.text);
    if (!object) continue;
    const auto list = scan_json_array(object->find("hooks"));
    if (!list || list->empty()) continue;
    const auto hook = scan_json_object(list->front());
    if (!hook) continue;
    const std::int64_t timeout = hook->integer("timeout", 600);
    hooks.push_back({.event = group.event,
                     .command = hook->text("command"),
                     .timeout_s = static_cast<int>(std::clamp<std::int64_t>(timeout, 0, 1 << 30)),
                     .source = source,
                     .group = group.index});
  }
  return hooks;
}

} // namespace nd7
