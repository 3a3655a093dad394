// Reading one hook call: the payload that an agent wrote to the hook's standard input becomes an
// Intent (agent.h declares read_hook). The payload is hostile input: the agent's model chose much
// of it. It is scanned strictly and kept as it came; nothing of it is believed.
//
// The body of the entry
//   - the payload's members verbatim, in order (line ends between tokens become spaces, so that an
//     entry stays one line);
//   - "argv": ["..."]   the command text of a Bash call;
//   - "paths": [...]    what Write, Edit, MultiEdit, NotebookEdit or apply_patch name, absolute;
//   - "ok": true, false or null (the agent does not say) for a tool_result;
//   - "hook_ppid": the hook's parent, when known;
//   - "cut": [{"at": "/tool_input/content", "length": L, "blake3": HEX}...] when something was
//     shortened: a JSON pointer, the bytes and the hash of the whole. Of a string the first
//     keep_content_bytes stay (length and hash are of the unescaped text); of a list or object the
//     first members ("kept": N tells how many; length and hash are of its JSON).
// A member of the payload that has one of these names (or "malformed", or "below_tool", which the
// gate adds) is kept as "agent_NAME".
//
// A payload that does not scan (or has more values or bytes than the limits below) becomes
//   {"malformed": true, "reason": ..., "length": L, "blake3": HEX, "payload" or "payload_b64": the
//   first keep_content_bytes}
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "agents/agent.h"

namespace nd7 {

// Larger payloads are malformed to us. `nd7 hook` reads on to the end all the same.
inline constexpr std::size_t hook_payload_bytes_max = std::size_t{64} << 20;
// Bounds the memory of the scan: commas outside strings.
inline constexpr std::size_t hook_values_max = 1'000'000;

// More than this is not kept, whatever is asked: a line of the log has a limit of its own.
inline constexpr std::size_t hook_keep_bytes_max = std::size_t{512} << 10;
// An entry's body is never longer.
constexpr std::size_t hook_body_bytes_max(std::size_t keep_content_bytes) {
  return 24 * keep_content_bytes + (std::size_t{256} << 10);
}

// The files that an apply_patch text adds, updates, deletes or moves to, in order.
std::vector<std::string> patch_paths(std::string_view patch);
// `path` as an absolute one without "." and "..", seen from `cwd`; lexical, no file is looked at.
std::string absolute_path(std::string_view path, std::string_view cwd);
// Usable as the name of a log directory: letters, digits, . _ -; 1..128; not . or ..
bool is_safe_agent_session(std::string_view id);

} // namespace nd7
