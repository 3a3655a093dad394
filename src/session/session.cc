#include "session/session.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <memory>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/json.h"
#include "os/files.h"

namespace nd7 {
namespace {

constexpr std::size_t meta_size_bytes_max = 1 << 20;
constexpr std::size_t first_line_size_bytes_max = 64 << 10;
constexpr std::size_t names_listed_max = 10;

std::string variable(const char* name) {
  const char* value = ::getenv(name);
  return value != nullptr ? value : "";
}

// The canonical directory, or "" when it is not absolute, not a directory, or "/".
std::string usable_home(const std::string& path) {
  if (path.empty() || path.front() != '/') return {};
  const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr), ::free);
  if (!resolved) return {};
  struct stat st {};
  if (::stat(resolved.get(), &st) != 0 || !S_ISDIR(st.st_mode)) return {};
  const std::string home = resolved.get();
  return home == "/" ? std::string() : home;
}

std::string passwd_home() {
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr || found->pw_dir == nullptr) {
    return {};
  }
  return found->pw_dir;
}

// XDG Base Directory Specification: a relative path is ignored.
std::string xdg(const char* name, const std::string& otherwise) {
  std::string value = variable(name);
  while (value.size() > 1 && value.back() == '/') value.pop_back();
  return (value.size() > 1 && value.front() == '/' ? value : otherwise) + "/nd7";
}

// The runtime directory must exist, be ours and closed to others: sudo and cron leave stale ones.
bool is_private_directory(const std::string& path) {
  struct stat st {};
  return ::lstat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == ::geteuid() &&
         (st.st_mode & 077) == 0;
}

// When the session began: its meta file, else its first entry, else the time in a UUIDv7.
std::int64_t started_ns(const std::string& directory, std::string_view id) {
  if (auto text = os::read_file(directory + "/meta.json", meta_size_bytes_max)) {
    if (auto meta = scan_json_object(*text)) {
      if (const std::int64_t ns = meta->integer("started_ns"); ns > 0) return ns;
    }
  }
  if (auto fd = os::open_file(directory + "/events.ndjson", O_RDONLY)) {
    if (auto bytes = os::read_at(fd->get(), 0, first_line_size_bytes_max)) {
      const std::string_view line(bytes->data(), std::min(bytes->find('\n'), bytes->size()));
      if (auto entry = scan_json_object(line)) return entry->integer("ts");
    }
  }
  if (id.size() == 36 && id[14] == '7') {
    const std::string text = std::string(id.substr(0, 8)) + std::string(id.substr(9, 4));
    if (is_hex(text, 12)) return std::strtoll(text.c_str(), nullptr, 16) * 1'000'000;
  }
  return 0;
}

SessionInfo describe(const Places& places, const std::string& id) {
  SessionInfo info;
  info.id = id;
  info.directory = session_directory(places, id);
  info.running = os::is_locked(info.directory + "/lock");
  info.started_ns = started_ns(info.directory, id);
  return info;
}

std::string agent_session_of(const SessionInfo& session) {
  auto text = os::read_file(session.directory + "/meta.json", meta_size_bytes_max);
  if (!text) return {};
  auto meta = scan_json_object(*text);
  return meta ? meta->text("agent_session") : std::string();
}

std::string names_of(const std::vector<SessionInfo>& sessions) {
  std::string text;
  for (std::size_t i = 0; i < sessions.size() && i < names_listed_max; ++i) {
    text += (i == 0 ? "" : ", ") + sessions[i].id;
  }
  if (sessions.size() > names_listed_max) text += ", ...";
  return text;
}

} // namespace

Result<Places> find_places() {
  Places places;
  places.passwd_home = usable_home(passwd_home());
  places.home = usable_home(variable("HOME"));
  if (places.home.empty()) places.home = places.passwd_home;
  if (places.passwd_home.empty()) places.passwd_home = places.home;
  if (places.home.empty()) {
    return fail("no usable home directory: HOME is unset, / or missing, and so is the passwd entry",
                "set HOME to your home directory");
  }
  places.state = xdg("XDG_STATE_HOME", places.home + "/.local/state");
  places.config = xdg("XDG_CONFIG_HOME", places.home + "/.config");
  places.cache = xdg("XDG_CACHE_HOME", places.home + "/.cache");
  const std::string runtime = variable("XDG_RUNTIME_DIR");
  places.runtime = !runtime.empty() && runtime.front() == '/' && is_private_directory(runtime)
                       ? xdg("XDG_RUNTIME_DIR", {})
                       : places.state + "/run";
  return places;
}

std::string new_session_id() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) ::abort();
  // RFC 9562, 5.7: 48 bits of milliseconds; the next 12 hold the fraction (6.2, method 3), so ids
  // of one machine sort by time also within a millisecond.
  const auto ns = static_cast<std::uint64_t>(system_clock().wall_ns());
  const std::uint64_t ms = ns / 1'000'000;
  const std::uint64_t fraction = (ns % 1'000'000) * 4096 / 1'000'000;
  for (unsigned i = 0; i < 6; ++i) bytes[i] = static_cast<unsigned char>(ms >> (40 - 8 * i));
  bytes[6] = static_cast<unsigned char>(0x70 | fraction >> 8);
  bytes[7] = static_cast<unsigned char>(fraction);
  bytes[8] = static_cast<unsigned char>(0x80 | (bytes[8] & 0x3f));
  std::string text = hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  for (const unsigned at : {20u, 16u, 12u, 8u}) text.insert(at, 1, '-');
  return text;
}

bool is_safe_id(std::string_view id) {
  if (id.empty() || id.size() > 128 || id == "." || id == "..") return false;
  return std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '_' || c == '-';
  });
}

std::string session_directory(const Places& places, std::string_view id) {
  return places.state + "/sessions/" + std::string(id);
}

Result<std::vector<SessionInfo>> list_sessions(const Places& places) {
  auto names = os::list_directory(places.state + "/sessions");
  if (!names) return std::unexpected(names.error());
  std::vector<SessionInfo> sessions;
  for (const std::string& name : *names) {
    if (is_safe_id(name)) sessions.push_back(describe(places, name));
  }
  std::stable_sort(
      sessions.begin(), sessions.end(), [](const SessionInfo& a, const SessionInfo& b) {
        return a.started_ns != b.started_ns ? a.started_ns > b.started_ns : a.id > b.id;
      });
  return sessions;
}

Result<SessionInfo> find_session(const Places& places, std::string_view id) {
  if (!id.empty() && !is_safe_id(id)) return fail("not a session id: '" + visible(id) + "'");
  auto sessions = list_sessions(places);
  if (!sessions) return std::unexpected(sessions.error());
  if (sessions->empty()) return fail("no sessions recorded yet", "nd7 run PROGRAM");
  if (id.empty()) return sessions->front();
  std::vector<SessionInfo> matches;
  for (const SessionInfo& session : *sessions) {
    if (session.id == id) return session;
    if (session.id.starts_with(id)) matches.push_back(session);
  }
  if (matches.empty()) { // the agent's own id; `claude --resume` gives several sessions the same
    for (const SessionInfo& session : *sessions) {
      const std::string own = agent_session_of(session);
      if (own == id) return session;
      if (own.starts_with(id)) matches.push_back(session);
    }
  }
  if (matches.empty()) return fail("no session '" + std::string(id) + "'", "nd7 sessions");
  if (matches.size() > 1) {
    return fail("'" + std::string(id) + "' fits several sessions: " + names_of(matches));
  }
  return matches.front();
}

Result<> make_private_directory(const std::string& path) {
  return os::make_private_directory(path);
}

} // namespace nd7
