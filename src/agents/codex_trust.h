// Codex runs a hook only when its config.toml (or a flag) holds a trusted hash of it; without one
// `codex exec` skips the hook and says nothing. The hash is SHA-256 over canonical JSON of the
// hook; computed here as 0.171.0 does it. That is no documented contract, so whoever writes one
// asks the client afterwards (`hooks/list` of its app-server) whether it agrees.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace nd7 {

struct CodexHook {
  std::string event;       // "PreToolUse"
  std::string command;     // the shell line
  int timeout_s = 600;     // as written; the client's own clamps are applied here
  std::string source = {}; // the file it stands in, as the client names it
  std::size_t group = 0;   // index of the group in the event's list
  std::size_t handler = 0; // index of the hook in the group
};
// "pre_tool_use" for "PreToolUse".
std::string codex_event_key(std::string_view event);
// "<source>:pre_tool_use:0:0": the key below [hooks.state].
std::string codex_hook_key(const CodexHook& hook);
// "sha256:<hex>".
std::string codex_hook_hash(const CodexHook& hook);
// The source name of hooks given with -c on the command line.
inline constexpr std::string_view codex_session_flags = "/<session-flags>/config.toml";

// --- the records in config.toml ------------------------------------------------------------------
// Edits are textual: every byte that is not ours stays. Our records stand at the end of the file
// under a comment line that names the source, each marked at the end of its line; the client may
// reorder them when it rewrites the file.

// `text` with records for exactly `hooks`, all of which stand in `source`; with no hooks, our
// records of that source are taken out again and the text is what it was before. A record of the
// same hook that the client itself wrote elsewhere is brought up to date where it stands; one that
// the user switched off stays so. `exists`: false when there is no file yet (text is then empty).
// Errors: the text does not parse, before or after.
Result<std::string> edit_codex_trust(std::string_view text, bool exists, std::string_view source,
                                     const std::vector<CodexHook>& hooks);
// Did edit_codex_trust make this file? Then it may be removed once nothing is left in it.
bool made_for_trust(std::string_view text, std::string_view source);

enum class CodexTrust { trusted, missing, modified, disabled };
// What config.toml's text says about one hook. Errors: it does not parse.
Result<CodexTrust> codex_trust(std::string_view text, const CodexHook& hook);

// What a config.toml or requirements.toml says about hooks as a whole.
struct CodexSwitches {
  bool hooks_off = false;    // [features] hooks = false
  bool managed_only = false; // allow_managed_hooks_only = true
};
Result<CodexSwitches> codex_switches(std::string_view text);

} // namespace nd7
