// Reading hook payloads of both agents, and editing settings files: whatever the bytes, a body is
// one bounded line of strict JSON, and an edit can be taken back.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "agents/agent.h"
#include "agents/hook.h"
#include "agents/settings_edit.h"
#include "base/json.h"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void read(nd7::AgentKind kind, std::string_view bytes, std::size_t keep) {
  const nd7::Intent intent =
      nd7::read_hook(kind, {.payload = bytes, .keep_content_bytes = keep, .hook_ppid = 1});
  const auto body = nd7::scan_json_object(intent.body);
  check(body.has_value());
  check(intent.body.find('\n') == std::string::npos);
  check(intent.body.size() <= nd7::hook_body_bytes_max(keep));
  check(body->has("malformed") == intent.malformed);
  check(!intent.malformed || intent.kind == "hook");
  check(intent.agent_session.empty() || nd7::is_safe_agent_session(intent.agent_session));
  for (const std::string& path : intent.paths) {
    check(path.front() == '/');
    check(path.find("/../") == std::string::npos && !path.ends_with("/.."));
  }
  const std::string answer = nd7::hook_answer(kind, intent.event, "x");
  check(answer.empty() || nd7::scan_json_object(answer).has_value());
}

void edit(nd7::AgentKind kind, std::string_view text) {
  const auto groups = nd7::nd7_hook_groups(kind, "/usr/bin/nd7");
  const auto there = nd7::find_hooks(kind, text);
  const auto with = nd7::add_hooks(kind, text, groups);
  if (!with) return;
  check(nd7::scan_json_object(*with).has_value());
  const auto without = nd7::remove_hooks(kind, *with);
  check(without.has_value());
  if (there && there->empty()) check(without->has_value() && **without == text);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const nd7::AgentKind kind : {nd7::AgentKind::claude, nd7::AgentKind::codex}) {
    read(kind, bytes, 64 << 10);
    read(kind, bytes, 16);
    edit(kind, bytes);
  }
  return 0;
}
