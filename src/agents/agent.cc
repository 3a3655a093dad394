#include "agents/agent.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>

#include "agents/client.h"
#include "base/json.h"

namespace nd7 {
namespace {

constexpr std::size_t settings_bytes_max = std::size_t{16} << 20;
// Claude Code hands the model the first 2 kB of a longer context and leaves the rest in a file;
// the JSON around the text counts too in a log, so stay clearly below.
constexpr std::size_t context_bytes_max = 1900;

const Client& client(AgentKind kind) {
  switch (kind) {
  case AgentKind::claude:
    return claude_client();
  case AgentKind::codex:
    return codex_client();
  case AgentKind::none:
    break;
  }
  return generic_client();
}

// At most `bytes_max` bytes, ending between characters.
std::string_view shortened(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

} // namespace

const AgentRow& agent_row(AgentKind kind) {
  return client(kind).row;
}

AgentKind agent_by_program(std::string_view path) {
  const AgentKind kind = agent_by_name(path.substr(path.rfind('/') + 1));
  return kind;
}

AgentKind agent_by_name(std::string_view name) {
  for (const AgentKind kind : {AgentKind::claude, AgentKind::codex}) {
    if (name == agent_row(kind).name) return kind;
  }
  return AgentKind::none;
}

std::span<const HookEvent> hook_events(AgentKind kind) {
  return client(kind).events;
}

const HookEvent* hook_event(AgentKind kind, std::string_view name) {
  const std::span<const HookEvent> events = hook_events(kind);
  const auto found = std::ranges::find_if(events, [&](const auto& e) { return name == e.name; });
  return found == events.end() ? nullptr : &*found;
}

std::optional<std::string> read_text_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             std::fclose);
  if (!file) return std::nullopt;
  std::string text;
  std::array<char, 4096> chunk;
  while (const std::size_t got = std::fread(chunk.data(), 1, chunk.size(), file.get())) {
    text.append(chunk.data(), got);
    if (text.size() > settings_bytes_max) return std::nullopt;
  }
  if (std::ferror(file.get()) != 0) return std::nullopt;
  return text;
}

Launch launch(AgentKind kind, const LaunchInput& input) {
  return client(kind).launch(input);
}

std::string hook_answer(AgentKind kind, std::string_view event, std::string_view text) {
  const HookEvent* row = hook_event(kind, event);
  if (row == nullptr || !row->takes_context || text.empty()) return {};
  // Codex shows the context to the model without a label.
  std::string said = text.starts_with("nd7: ") ? std::string() : "nd7: ";
  said += text;
  if (said.size() > context_bytes_max) {
    constexpr std::string_view rest = "\n(cut; the person sees all of it in `nd7 show`)";
    said = std::string(shortened(said, context_bytes_max - rest.size()));
    said += rest;
  }
  const std::string specific =
      JsonWriter().text("hookEventName", event).text("additionalContext", said).finish();
  return JsonWriter().raw("hookSpecificOutput", specific).finish();
}

} // namespace nd7
