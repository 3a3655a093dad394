// Where nd7 keeps things, and the identity of a session.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace nd7 {

// Places from HOME, XDG_* and the passwd entry. All absolute, none need exist.
struct Places {
  std::string home;        // resolved
  std::string passwd_home; // from the passwd entry, resolved; may equal home
  std::string state;       // $XDG_STATE_HOME/nd7
  std::string config;      // $XDG_CONFIG_HOME/nd7
  std::string cache;       // $XDG_CACHE_HOME/nd7
  std::string runtime;     // $XDG_RUNTIME_DIR/nd7, else state/run
};
// Fails when HOME is unset, "/" or unusable and the passwd entry gives nothing either.
Result<Places> find_places();

std::string new_session_id();         // UUIDv7 (RFC 9562)
bool is_safe_id(std::string_view id); // letters, digits, . _ -; 1..128; not . or ..
std::string session_directory(const Places& places, std::string_view id);

struct SessionInfo {
  std::string id;
  std::string directory;
  bool running = false;
  std::int64_t started_ns = 0;
};
// Newest first.
Result<std::vector<SessionInfo>> list_sessions(const Places& places);
// A full id, a unique prefix, the agent's own session id, or "" for the newest. Errors: none,
// ambiguous (lists them).
Result<SessionInfo> find_session(const Places& places, std::string_view id);

// Makes `path` and parents, 0700, ours; refuses links and foreign owners in the last component.
Result<> make_private_directory(const std::string& path);

} // namespace nd7
