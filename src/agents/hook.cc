#include "agents/hook.h"

#include <blake3.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/json.h"
#include "core/log_format.h"

namespace nd7 {
namespace {

static_assert(hook_body_bytes_max(hook_keep_bytes_max) < log_format::entry_size_bytes_max);
constexpr std::size_t command_bytes_max = std::size_t{128}
                                          << 10; // the kernel's own for one argument
constexpr std::size_t paths_max = 1024;
constexpr std::size_t cuts_max = 32;
constexpr std::size_t small_member_bytes = 1024; // kept whatever else is cut
constexpr std::size_t small_members_max = 64;
constexpr std::size_t key_bytes_max = 256;
constexpr unsigned cut_depth_max = 4; // deeper down, a long value is dropped as a whole
// below_tool is the gate's, for a hook that a tool's process called.
constexpr std::array<std::string_view, 7> own_names = {"argv",      "paths",     "ok",        "cut",
                                                       "hook_ppid", "malformed", "below_tool"};

std::string blake3_hex(std::string_view bytes) {
  blake3_hasher hasher;
  blake3_hasher_init(&hasher);
  blake3_hasher_update(&hasher, bytes.data(), bytes.size());
  std::array<std::uint8_t, BLAKE3_OUT_LEN> digest;
  blake3_hasher_finalize(&hasher, digest.data(), digest.size());
  std::string text;
  for (const std::uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

std::string_view shortened(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

// Commas outside strings: a cheap bound of what the scan will have to hold.
bool has_too_many_values(std::string_view payload) {
  std::size_t commas = 0;
  for (std::size_t i = 0; i < payload.size(); ++i) {
    if (payload[i] == ',' && ++commas > hook_values_max) return true;
    if (payload[i] != '"') continue;
    for (++i; i < payload.size() && payload[i] != '"'; ++i) {
      if (payload[i] == '\\') ++i;
    }
  }
  return false;
}

// Raw JSON on one line: a line end can only stand between tokens.
void append_flat(std::string& out, std::string_view raw) {
  const std::size_t from = out.size();
  out += raw;
  for (std::size_t i = from; i < out.size(); ++i) {
    if (out[i] == '\n' || out[i] == '\r') out[i] = ' ';
  }
}

// Copies values, and shortens them when they are long. One budget for all of them.
class Cutter {
public:
  explicit Cutter(std::size_t keep) : keep_(keep), budget_(4 * keep) {}

  void value(std::string& out, std::string_view raw, const std::string& at, unsigned depth) {
    if (raw.size() <= std::min(keep_, budget_)) return copy(out, raw);
    switch (raw.front()) {
    case '"':
      return text(out, raw, at);
    case '{':
      return object(out, raw, at, depth);
    case '[':
      return array(out, raw, at, depth);
    default:
      note(at, raw, 0);
      return copy(out, "null");
    }
  }
  bool spent() const { return budget_ == 0; }
  // `kept` members of the container at `at` stayed.
  void note(const std::string& at, std::string_view whole, std::size_t kept, bool counts = false) {
    if (cuts_++ >= cuts_max) return;
    JsonWriter cut;
    cut.text("at", at).count("length", whole.size()).text("blake3", blake3_hex(whole));
    if (counts) cut.count("kept", kept);
    list_ += (list_.empty() ? "" : ",") + cut.finish();
  }
  std::string list() const { return "[" + list_ + "]"; }
  std::size_t cuts() const { return cuts_; }

  static std::string below(const std::string& at, std::string_view key) {
    std::string pointer = at + "/"; // RFC 6901
    for (const char c : key) {
      if (c == '~') {
        pointer += "~0";
      } else if (c == '/') {
        pointer += "~1";
      } else {
        pointer += c;
      }
    }
    return pointer;
  }

private:
  void spend(std::size_t bytes) { budget_ -= std::min(budget_, bytes); }
  void copy(std::string& out, std::string_view raw) {
    append_flat(out, raw);
    spend(raw.size());
  }

  void text(std::string& out, std::string_view raw, const std::string& at) {
    const std::string whole = json_unquote(raw);
    const std::string_view kept = shortened(whole, std::min(keep_, budget_));
    if (kept.size() < whole.size()) note(at, whole, 0);
    const std::string quoted = json_quote(kept);
    out += quoted;
    spend(quoted.size());
  }

  void object(std::string& out, std::string_view raw, const std::string& at, unsigned depth) {
    const auto scanned = depth < cut_depth_max ? scan_json_object(raw) : fail("deep");
    out += '{';
    std::size_t kept = 0;
    if (scanned) {
      for (const JsonObject::Member& member : scanned->members()) {
        if (spent() || member.key.size() > key_bytes_max) break;
        const std::string key = json_quote(member.key);
        out += (kept++ > 0 ? "," : "") + key + ":";
        spend(key.size() + 2);
        value(out, member.value, below(at, member.key), depth + 1);
      }
    }
    out += '}';
    if (!scanned || kept < scanned->members().size()) note(at, raw, kept, true);
  }

  void array(std::string& out, std::string_view raw, const std::string& at, unsigned depth) {
    const auto scanned = depth < cut_depth_max ? scan_json_array(raw) : fail("deep");
    out += '[';
    std::size_t kept = 0;
    if (scanned) {
      for (const std::string_view element : *scanned) {
        if (spent()) break;
        if (kept > 0) out += ',';
        spend(1);
        value(out, element, below(at, std::to_string(kept++)), depth + 1);
      }
    }
    out += ']';
    if (!scanned || kept < scanned->size()) note(at, raw, kept, true);
  }

  std::size_t keep_;
  std::size_t budget_;
  std::string list_;
  std::size_t cuts_ = 0;
};

Intent malformed(const AgentRow& agent, const HookInput& input, std::string_view reason) {
  JsonWriter body;
  body.boolean("malformed", true)
      .text("reason", reason)
      .count("length", input.payload.size())
      .text("blake3", blake3_hex(input.payload));
  // Cut between characters, or UTF-8 would stop being UTF-8 by our cut.
  body.path("payload", shortened(input.payload, input.keep_content_bytes));
  if (input.hook_ppid != 0) body.number("hook_ppid", input.hook_ppid);
  Intent intent;
  intent.source = agent.source;
  intent.kind = "hook";
  intent.body = body.finish();
  intent.malformed = true;
  return intent;
}

void add_path(Intent& intent, std::string_view path, std::string_view cwd) {
  if (path.empty() || path.size() > 4096 || intent.paths.size() >= paths_max) return;
  intent.paths.push_back(absolute_path(path, cwd));
}

// command and paths of a tool's input. `argv` is what the entry shows of the command.
void read_tool_input(Intent& intent, const JsonObject& payload, std::vector<std::string>& argv) {
  const std::string_view raw = payload.find("tool_input");
  if (raw.empty() || raw.front() != '{') return;
  const auto input = scan_json_object(raw);
  if (!input) return;
  const std::string cwd = payload.text("cwd", "/");
  const std::string& tool = intent.tool_name;
  if (tool == "Bash") {
    std::string command = input->text("command");
    command.resize(shortened(command, command_bytes_max).size());
    intent.command = std::move(command);
    if (input->has("command")) argv.push_back(intent.command);
  } else if (tool == "Write" || tool == "Edit" || tool == "MultiEdit") {
    add_path(intent, input->text("file_path"), cwd);
  } else if (tool == "NotebookEdit") {
    add_path(intent, input->text("notebook_path"), cwd);
  } else if (tool == "apply_patch") {
    for (const std::string& path : patch_paths(input->text("command"))) add_path(intent, path, cwd);
  }
}

// Codex announces no exit status: only apply_patch and MCP servers say how it went.
std::string_view codex_result(const Intent& intent, const JsonObject& payload) {
  const std::string_view raw = payload.find("tool_response");
  if (raw.starts_with('{')) {
    const auto response = scan_json_object(raw);
    if (response && response->has("isError")) {
      return response->boolean("isError") ? "false" : "true";
    }
  } else if (intent.tool_name == "apply_patch") {
    constexpr std::string_view label = "\"Exit code: ";
    if (raw.starts_with(label)) {
      return raw.substr(label.size()).starts_with("0\\n") ? "true" : "false";
    }
  }
  return "null";
}

std::string body_of(const Intent& intent, AgentKind kind, const JsonObject& payload,
                    const std::vector<std::string>& argv, const HookInput& input) {
  const bool whole = input.payload.size() <= input.keep_content_bytes;
  Cutter cutter(input.keep_content_bytes);
  std::string out = "{";
  std::size_t kept = 0;
  const auto add = [&](std::string_view key) {
    out += (out.size() > 1 ? "," : "") + json_quote(key) + ":";
  };
  for (const JsonObject::Member& member : payload.members()) {
    std::string key = member.key;
    if (std::ranges::find(own_names, key) != own_names.end()) {
      key = "agent_" + key;
      if (payload.has(key)) continue;
    }
    const bool small = kept < small_members_max && member.value.size() <= small_member_bytes;
    if (!whole && (key.size() > key_bytes_max || (cutter.spent() && !small))) continue;
    add(key);
    ++kept;
    if (whole || small) {
      append_flat(out, member.value);
    } else {
      cutter.value(out, member.value, Cutter::below("", member.key), 1);
    }
  }
  if (kept < payload.members().size()) cutter.note("", input.payload, kept, true);
  if (!argv.empty()) {
    add("argv");
    out += '[';
    for (const std::string& word : argv) {
      if (&word != &argv.front()) out += ',';
      out += json_quote(shortened(word, input.keep_content_bytes));
    }
    out += ']';
  }
  if (!intent.paths.empty()) {
    add("paths");
    std::size_t left = input.keep_content_bytes;
    std::vector<std::string> shown;
    for (const std::string& path : intent.paths) {
      if (path.size() > left) break;
      left -= path.size();
      shown.push_back(path);
    }
    if (shown.size() < intent.paths.size()) cutter.note("/paths", {}, shown.size(), true);
    const std::string list = JsonWriter().texts("p", shown).finish();
    out += std::string_view(list).substr(5, list.size() - 6); // inside {"p":...}
  }
  if (intent.kind == "tool_result") {
    add("ok");
    out += kind == AgentKind::codex        ? codex_result(intent, payload)
           : intent.event == "PostToolUse" ? std::string_view("true")
                                           : std::string_view("false");
  }
  if (input.hook_ppid != 0) {
    add("hook_ppid");
    out += std::to_string(input.hook_ppid);
  }
  if (cutter.cuts() > 0) {
    add("cut");
    out += cutter.list();
  }
  return out + "}";
}

} // namespace

std::vector<std::string> patch_paths(std::string_view patch) {
  constexpr std::array<std::string_view, 4> headers = {
      "*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "};
  std::vector<std::string> paths;
  while (!patch.empty() && paths.size() < paths_max) {
    const std::size_t end = std::min(patch.find('\n'), patch.size());
    std::string_view line = patch.substr(0, end);
    patch.remove_prefix(std::min(end + 1, patch.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    for (const std::string_view header : headers) {
      // Lines of content begin with '+', '-', ' ' or '@', so a header is never content.
      if (!line.starts_with(header)) continue;
      std::string_view path = line.substr(header.size());
      while (path.ends_with(' ')) path.remove_suffix(1);
      if (!path.empty()) paths.emplace_back(path);
    }
  }
  return paths;
}

std::string absolute_path(std::string_view path, std::string_view cwd) {
  std::string whole = path.starts_with('/') ? std::string() : std::string(cwd) + "/";
  whole += path;
  std::vector<std::string_view> parts;
  std::string_view rest = whole;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else {
      parts.push_back(part);
    }
  }
  std::string result;
  for (const std::string_view part : parts) {
    result += '/';
    result += part;
  }
  return result.empty() ? "/" : result;
}

bool is_safe_agent_session(std::string_view id) {
  if (id.empty() || id.size() > 128 || id == "." || id == "..") return false;
  return id.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
         std::string_view::npos;
}

Intent read_hook(AgentKind kind, const HookInput& asked) {
  const AgentRow& agent = agent_row(kind);
  HookInput input = asked;
  input.keep_content_bytes = std::min(asked.keep_content_bytes, hook_keep_bytes_max);
  if (input.payload.size() > hook_payload_bytes_max) {
    return malformed(agent, input, "longer than nd7 reads");
  }
  if (has_too_many_values(input.payload)) {
    return malformed(agent, input, "more values than nd7 reads");
  }
  const auto payload = scan_json_object(input.payload, {.size_bytes_max = hook_payload_bytes_max});
  if (!payload) return malformed(agent, input, payload.error().text);
  const std::string event = payload->text("hook_event_name");
  if (event.empty() || event.size() > key_bytes_max) {
    return malformed(agent, input, "no hook_event_name");
  }
  Intent intent;
  intent.source = agent.source;
  intent.event = event;
  const HookEvent* row = hook_event(kind, event);
  intent.kind = row != nullptr ? row->kind : "hook";
  if (const std::string id = payload->text("session_id"); is_safe_agent_session(id)) {
    intent.agent_session = id;
  }
  intent.tool_use_id = payload->text("tool_use_id");
  if (intent.tool_use_id.size() > key_bytes_max) intent.tool_use_id.clear();
  intent.tool_name = payload->text("tool_name");
  if (intent.tool_name.size() > key_bytes_max) intent.tool_name.clear();
  std::vector<std::string> argv;
  read_tool_input(intent, *payload, argv);
  intent.body = body_of(intent, kind, *payload, argv, input);
  return intent;
}

} // namespace nd7
