// Any other program: no hooks, no flags, no keys of its own.
#include "agents/client.h"

namespace nd7 {
namespace {

Launch launch_generic(const LaunchInput& input) {
  return {.argv = input.argv, .env = {}};
}

} // namespace

const Client& generic_client() {
  static const Client client{.row = {.kind = AgentKind::none,
                                     .name = "none",
                                     .source = "intent:none",
                                     .config_variable = "",
                                     .pass_env = {},
                                     .hosts = {}},
                             .events = {},
                             .launch = launch_generic};
  return client;
}

} // namespace nd7
