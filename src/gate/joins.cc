#include "gate/joins.h"

#include <algorithm>

namespace nd7 {
namespace {

constexpr std::size_t calls_max = 1024;

std::string_view environment_value(std::string_view environment, std::string_view name) {
  std::size_t at = 0;
  while (at < environment.size()) {
    const std::size_t end = std::min(environment.find('\0', at), environment.size());
    const std::string_view entry = environment.substr(at, end - at);
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
    at = end + 1;
  }
  return {};
}

// Claude Code runs: eval 'COMMAND' with the command single-quoted; compare without the quoting.
std::string without_quotes(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c != '\'' && c != '"' && c != '\\') out += c;
  return out;
}

} // namespace

void Joins::announce(const Intent& intent) {
  if (intent.tool_use_id.empty()) return;
  const std::lock_guard hold(lock_);
  if (calls_.size() >= calls_max) calls_.erase(calls_.begin());
  calls_.push_back({intent.tool_use_id, intent.command, intent.paths, true, false});
}

void Joins::finished(const std::string& tool_use_id) {
  const std::lock_guard hold(lock_);
  for (Announced& call : calls_)
    if (call.id == tool_use_id) call.open = false;
}

Join Joins::of_exec(const Process& process, const std::vector<std::string>& argv,
                    std::string_view environment) {
  const Join now = process.joined();
  const std::lock_guard hold(lock_);
  const std::string_view claimed = environment_value(environment, "CODEX_TOOL_CALL_ID");
  for (auto call = calls_.rbegin(); call != calls_.rend(); ++call) {
    bool match = !claimed.empty() && call->id == claimed;
    if (!match && call->open && !call->command.empty() && argv.size() >= 3) {
      const std::string wanted = without_quotes(call->command);
      for (std::size_t i = 1; i < argv.size() && !match; ++i)
        match = argv[i - 1].starts_with('-') && argv[i - 1].ends_with('c') &&
                without_quotes(argv[i]).contains(wanted);
    }
    if (!match) continue;
    if (call->started && !now.call.empty()) return now;
    call->started = true;
    sessions_[process.process_session] = call->id;
    return {call->id, "announced"};
  }
  return now;
}

Join Joins::of_new(const Process& process, const Process* parent) {
  if (parent != nullptr)
    if (const Join join = parent->joined(); !join.call.empty()) return {join.call, "descendant"};
  const std::lock_guard hold(lock_);
  if (const auto at = sessions_.find(process.process_session); at != sessions_.end())
    return {at->second, "session"};
  return {};
}

Join Joins::of_own_write(std::string_view path) {
  const std::lock_guard hold(lock_);
  for (auto call = calls_.rbegin(); call != calls_.rend(); ++call) {
    if (!call->open) continue;
    for (const std::string& named : call->paths)
      // Both agents write a sibling first and rename it: F.tmp.PID.HEX.
      if (path == named || (path.starts_with(named) && path.substr(named.size()).starts_with(".")))
        return {call->id, "own-write"};
  }
  return {};
}

bool Joins::any_open() {
  const std::lock_guard hold(lock_);
  return std::any_of(calls_.begin(), calls_.end(), [](const Announced& call) { return call.open; });
}

} // namespace nd7
