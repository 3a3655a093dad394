// The hook socket: what the agent's hooks say becomes intent entries; what must be told goes back.
//
// The gate has led the connection here and knows which process made it; nothing of what the client
// says about itself is believed. A hook below a tool's process is recorded as such, gets no text
// and announces nothing.
#pragma once

#include <string>

#include "core/telling.h"
#include "gate/context.h"
#include "gate/supervisor.h"

namespace nd7 {

class HookServer {
public:
  HookServer(Context& context, const HookPort& port, std::string note)
      : c_(context), port_(port), note_(std::move(note)) {}
  // Handles one connection to its end, bounded in time and size.
  void serve(Fd connection);

private:
  bool from_agent(pid_t pid);
  std::vector<Told> foreseen(const std::string& agent, const Intent& intent);
  Context& c_;
  const HookPort& port_;
  std::string note_;
};

// Listens on a unix socket in a private directory; the path must fit sun_path.
Result<Fd> listen_unix(const std::string& path);

} // namespace nd7
