#include "core/event.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/log_format.h"

namespace nd7 {
namespace {

constexpr KindRow table[] = {
    {"session_start", Voice::intent, "session", "session starts"},
    {"prompt", Voice::intent, "prompt", "prompts"},
    {"tool_call", Voice::intent, "call", "tool calls"},
    {"tool_result", Voice::intent, "result", "tool results"},
    {"turn_end", Voice::intent, "turn end", "turns"},
    {"session_end", Voice::intent, "leaves", "session ends"},
    {"hook", Voice::intent, "hook", "hooks"},
    {"exec", Voice::effect, "exec", "programs"},
    {"exit", Voice::effect, "exit", "exits"},
    {"read", Voice::effect, "read", "reads"},
    {"write", Voice::effect, "write", "writes"},
    {"mkdir", Voice::effect, "mkdir", "directories"},
    {"remove", Voice::effect, "remove", "removals"},
    {"rename", Voice::effect, "rename", "renames"},
    {"link", Voice::effect, "link", "links"},
    {"symlink", Voice::effect, "symlink", "symlinks"},
    {"meta", Voice::effect, "meta", "metadata changes"},
    {"connect", Voice::effect, "connect", "connections"},
    {"listen", Voice::effect, "listen", "listeners"},
    {"resolve", Voice::effect, "resolve", "names resolved"},
    {"signal", Voice::effect, "signal", "signals"},
    {"refused", Voice::effect, "REFUSED", "refusals"},
    {"start", Voice::nd7, "start", "starts"},
    {"grant", Voice::nd7, "grant", "grants"},
    {"revoke", Voice::nd7, "revoke", "revocations"},
    {"checkpoint", Voice::nd7, "signed", "checkpoints"},
    {"gap", Voice::nd7, "GAP", "gaps"},
    {"end", Voice::nd7, "end", "ends"},
};

std::uint64_t unsigned_member(const JsonObject& object, std::string_view key) {
  const std::string_view raw = object.find(key);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(raw.data(), raw.data() + raw.size(), value);
  return error == std::errc() && end == raw.data() + raw.size() ? value : 0;
}

} // namespace

Voice voice_of(std::string_view source) {
  if (source.starts_with("intent:")) return Voice::intent;
  if (source.starts_with("effect:")) return Voice::effect;
  return source == log_format::source_nd7 ? Voice::nd7 : Voice::other;
}

std::span<const KindRow> kinds() {
  return table;
}

const KindRow* find_kind(std::string_view name) {
  const auto* row = std::find_if(std::begin(table), std::end(table),
                                 [&](const KindRow& r) { return r.name == name; });
  return row != std::end(table) ? row : nullptr;
}

std::string counted(std::uint64_t count, std::string_view kind) {
  const KindRow* row = find_kind(kind);
  std::string word = row != nullptr ? row->plural : std::string(kind);
  if (row != nullptr && count == 1) {
    if (word == "directories") {
      word = "directory";
    } else if (word == "names resolved") {
      word = "name resolved";
    } else {
      word.pop_back();
    }
  }
  return fmt::format("{} {}", count, word);
}

Result<> read_entry(std::string_view line, Entry& entry) {
  auto envelope = scan_json_object(line, {.size_bytes_max = log_format::entry_size_bytes_max,
                                          .depth_max = log_format::depth_max});
  if (!envelope) return std::unexpected(envelope.error());
  for (const char* key : {"v", "seq", "ts", "source", "kind", "body"}) {
    if (!envelope->has(key)) return fail(fmt::format("no member '{}'", key));
  }
  entry.v = envelope->integer("v", -1);
  entry.session_id = envelope->text("session_id");
  entry.seq = unsigned_member(*envelope, "seq");
  entry.ts = envelope->integer("ts");
  entry.mono = unsigned_member(*envelope, "mono");
  entry.host = envelope->text("host");
  entry.source = envelope->text("source");
  entry.kind = envelope->text("kind");
  entry.prev = envelope->text("prev");
  entry.hash = envelope->text("hash");
  entry.body_text = envelope->find("body");
  auto body = scan_json_object(entry.body_text, {.depth_max = log_format::depth_max});
  if (!body) return fail("body: " + body.error().text);
  entry.body = std::move(*body);
  return {};
}

std::string path_member(const JsonObject& body, std::string_view key) {
  if (body.has(key)) return body.text(key);
  return base64_decode(body.text(std::string(key) + "_b64"));
}

std::vector<std::string> texts_member(const JsonObject& body, std::string_view key) {
  std::vector<std::string> texts;
  if (auto elements = scan_json_array(body.find(key))) {
    for (const std::string_view element : *elements) texts.push_back(json_unquote(element));
  }
  return texts;
}

void LineSplitter::feed(std::string_view chunk,
                        const std::function<bool(std::string_view line)>& each) {
  while (!chunk.empty()) {
    const std::size_t newline = chunk.find('\n');
    const std::string_view piece = chunk.substr(0, newline);
    if (newline != std::string_view::npos && rest_.empty()) {
      if (!each(piece)) return;
    } else {
      const std::size_t room = log_format::entry_size_bytes_max - rest_.size();
      rest_.append(piece.substr(0, room));
      if (newline == std::string_view::npos) return;
      const bool go_on = each(rest_);
      rest_.clear();
      if (!go_on) return;
    }
    chunk.remove_prefix(newline + 1);
  }
}

} // namespace nd7
