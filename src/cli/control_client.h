// The other end of a session's control socket (gate/control_server.h).
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "session/session.h"

namespace nd7 {

struct Reply {
  std::string text; // owns what `object` points into
  JsonObject object;
};
// Sends one request and reads the answer. Errors: the session has ended, refused, its own words.
Result<Reply> ask_session(const Places& places, const SessionInfo& session,
                          const std::string& request);
// The running session that is meant: by id, or the only one. Several: asked on a terminal, else an
// error that lists them.
Result<SessionInfo> choose_session(const Places& places, const std::string& id);

} // namespace nd7
