#include "core/timeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/policy.h"

namespace nd7 {
namespace {

// Paths are shortened, as a person would write them.
class Words {
public:
  Words(const JsonObject& body, const std::string& home, const std::string& project)
      : body_(body), home_(home), project_(project) {}

  std::string shown(const std::string& path) const {
    if (below(path, project_)) return "." + path.substr(project_.size());
    if (below(path, home_)) return "~" + path.substr(home_.size());
    return path;
  }
  std::string path(std::string_view key) const { return shown(path_member(body_, key)); }
  std::string text(std::string_view key) const { return body_.text(key); }
  // A member whatever its type: strings unquoted, the rest as JSON.
  std::string any(std::string_view key) const {
    const std::string_view raw = body_.find(key);
    return raw.starts_with('"') ? json_unquote(raw) : std::string(raw);
  }
  bool is_null(std::string_view key) const { return !body_.has(key) || body_.find(key) == "null"; }

  std::string command() const {
    std::string line;
    for (const std::string& word : texts_member(body_, "argv")) {
      line += (line.empty() ? "" : " ") + shell_word(word);
    }
    return line.empty() ? path("path") : line;
  }
  std::string endpoint() const {
    const std::string addr = any("addr");
    const std::string port = any("port");
    const std::string name = text("name");
    const bool v6 = addr.find(':') != std::string::npos;
    const std::string where = port.empty() ? addr
                              : v6         ? fmt::format("[{}]:{}", addr, port)
                                           : fmt::format("{}:{}", addr, port);
    if (name.empty()) return where.empty() ? path("path") : where;
    return fmt::format("{}{} ({})", name, port.empty() ? "" : ":" + port, addr);
  }

private:
  static bool below(const std::string& path, const std::string& directory) {
    return !directory.empty() && path.starts_with(directory) &&
           (path.size() == directory.size() || path[directory.size()] == '/');
  }
  const JsonObject& body_;
  const std::string& home_;
  const std::string& project_;
};

std::string tilde_of(const std::string& path, const std::string& home) {
  if (home.empty() || !path.starts_with(home)) return path;
  return path.size() == home.size() || path[home.size()] == '/' ? "~" + path.substr(home.size())
                                                                : path;
}

std::string joined(const std::vector<std::string>& texts, std::string_view between) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : std::string(between)) + text;
  return out;
}

std::string effect_text(std::string_view kind, const JsonObject& body, const Words& w) {
  if (kind == "exec") return w.command();
  if (kind == "exit") {
    if (!w.is_null("signal")) return "signal " + w.any("signal");
    return w.is_null("status") ? "status unknown" : "status " + w.any("status");
  }
  if (kind == "read") {
    const std::int64_t count = body.integer("count", 1);
    return count > 1 ? fmt::format("{} ({} times)", w.path("path"), count) : w.path("path");
  }
  if (kind == "write") {
    const std::string mode = w.text("mode");
    const std::string note = mode == "created"     ? " (new)"
                             : mode == "truncated" ? " (rewritten)"
                                                   : "";
    return w.path("path") + note;
  }
  if (kind == "symlink") return w.path("to") + " -> " + path_member(body, "from");
  if (kind == "rename" || kind == "link") {
    return w.path("from") + " -> " + w.path("to") +
           (body.boolean("replaced") ? " (replaced it)" : "");
  }
  if (kind == "meta") {
    std::string text = w.path("path") + ": " + w.text("change");
    if (!w.is_null("before") && !w.is_null("after")) {
      text += " " + w.any("before") + " -> " + w.any("after");
    } else if (!w.is_null("after")) {
      text += " " + w.any("after");
    }
    return text;
  }
  if (kind == "connect" || kind == "listen") {
    std::string text = w.endpoint();
    if (body.has("bytes_out"))
      text += fmt::format(", {} bytes out, {} in", w.any("bytes_out"), w.any("bytes_in"));
    return text;
  }
  if (kind == "resolve") {
    const std::string answers = joined(texts_member(body, "answers"), ", ");
    const std::string outcome = !w.is_null("refused") ? "refused: " + w.any("refused")
                                : answers.empty()     ? "no answer"
                                                      : answers;
    return fmt::format("{} {} -> {}", w.text("name"), w.text("type"), outcome);
  }
  if (kind == "signal") return fmt::format("{} to process {}", w.any("number"), w.any("to"));
  if (body.has("from") || body.has("from_b64")) return w.path("from") + " -> " + w.path("to");
  if (body.has("path") || body.has("path_b64")) return w.path("path");
  if (body.has("addr")) return w.endpoint();
  return w.text("op");
}

std::string intent_text(std::string_view kind, const JsonObject& body, const Words& w) {
  const auto first_of = [&](std::initializer_list<const char*> keys) {
    for (const char* key : keys) {
      if (std::string text = body.text(key); !text.empty()) return text;
    }
    return std::string();
  };
  const std::string tool = w.text("tool_name");
  if (kind == "session_start") return first_of({"reason", "source", "session_id"});
  if (kind == "session_end") return first_of({"reason"});
  if (kind == "prompt") return first_of({"prompt", "text"});
  if (kind == "turn_end") return first_of({"last_assistant_message", "reason"});
  if (kind == "tool_call") {
    if (const std::string command = first_of({"argv", "command"}); !command.empty()) {
      return tool + ": " + command;
    }
    std::vector<std::string> names;
    for (const std::string& path : texts_member(body, "paths")) names.push_back(w.shown(path));
    if (!names.empty()) return tool + " " + joined(names, ", ");
    const std::string_view input = body.find("tool_input");
    return tool + (input.empty() ? "" : " ") + std::string(input.substr(0, 200));
  }
  if (kind == "tool_result") {
    std::string text = tool;
    if (body.has("ok")) text += body.boolean("ok") ? ": done" : ": failed";
    if (body.has("duration_ms")) text += fmt::format(" after {} ms", body.integer("duration_ms"));
    return text;
  }
  const std::string event = first_of({"hook_event_name", "event"});
  const std::string message = first_of({"message", "reason"});
  return message.empty() ? event : event + ": " + message;
}

std::string counts_text(const JsonObject& body) {
  std::string text;
  if (auto counts = scan_json_object(body.find("counts"))) {
    for (const JsonObject::Member& member : counts->members()) {
      if (member.value == "0") continue;
      std::string kind = member.key; // "writes" counts entries of kind "write"
      if (kind.ends_with('s')) kind.pop_back();
      const auto count = static_cast<std::uint64_t>(counts->integer(member.key));
      text += ", " + (find_kind(kind) != nullptr ? counted(count, kind)
                                                 : fmt::format("{} {}", count, member.key));
    }
  }
  return text;
}

void nd7_row(const Entry& entry, const Words& w, const std::string& home, Row& row) {
  const JsonObject& body = entry.body;
  if (entry.kind == "start") {
    const std::string project = path_member(body, "project");
    row.text = w.command() + " in " + tilde_of(project, home);
    row.details.push_back(fmt::format("nd7 {}, kernel {}", w.any("nd7_version"), w.any("kernel")));
    for (const std::string& missing : texts_member(body, "not_enforced")) {
      row.notes.push_back("not enforced: " + missing);
    }
    row.details.push_back("enforced: " + joined(texts_member(body, "enforced"), ", "));
    if (auto rules = scan_json_array(body.find("rules"))) {
      for (const std::string_view raw : *rules) {
        if (auto rule = scan_json_object(raw)) {
          row.details.push_back(fmt::format("rule: {} {} ({})", rule->text("effect"),
                                            path_member(*rule, "path"), rule->text("reason")));
        }
      }
    }
    row.details.push_back("environment passed: " + joined(texts_member(body, "env_passed"), " "));
  } else if (entry.kind == "grant" || entry.kind == "revoke") {
    std::string object = w.path("path");
    if (object.empty()) object = w.text("host");
    if (!w.is_null("port")) object += (object.empty() ? "port " : ":") + w.any("port");
    row.text = fmt::format("{} {}", w.text("what"), object);
    if (!w.is_null("by")) row.text += " by " + w.any("by");
  } else if (entry.kind == "checkpoint") {
    row.text = fmt::format("{} entries, key {}", w.any("count"), w.any("key"));
  } else if (entry.kind == "gap") {
    row.text = w.text("reason");
    if (!w.is_null("lost")) row.text += fmt::format(", {} entries lost", w.any("lost"));
    if (body.has("torn_bytes")) row.text += fmt::format(" of {} bytes", w.any("torn_bytes"));
    if (!w.is_null("inflight") && w.any("inflight") != "[]") {
      row.text += ", in flight: " + w.any("inflight");
    }
  } else if (entry.kind == "end") {
    row.text = w.is_null("signal") ? "exit " + w.any("exit") : "signal " + w.any("signal");
    if (!w.is_null("seconds")) row.text += fmt::format(" after {} s", w.any("seconds"));
    row.text += counts_text(body);
    row.text += fmt::format(", {} refused", body.integer("refused"));
  } else {
    row.text = entry.body_text;
  }
}

} // namespace

Row row_of(const Entry& entry, const std::string& home, const std::string& project) {
  const Words w(entry.body, home, project);
  Row row;
  row.seq = entry.seq;
  row.ts = entry.ts;
  row.voice = entry.voice();
  row.kind = entry.kind;
  row.pid = entry.body.integer("pid");
  switch (row.voice) {
  case Voice::intent:
    row.call = entry.body.text("tool_use_id");
    row.text = intent_text(entry.kind, entry.body, w);
    break;
  case Voice::effect: {
    row.call = entry.body.text("call");
    const bool refused = entry.kind == "refused";
    const std::string would = entry.body.text("would");
    row.text = effect_text(refused ? would : entry.kind, entry.body, w);
    if (refused) {
      row.text = would + " " + row.text;
      row.rule = entry.body.text("rule");
      row.open_with = entry.body.text("open_with");
    } else if (const std::string result = w.any("result"); !result.empty() && result != "0") {
      row.text += ": " + result;
    }
    if (row.pid != 0) {
      std::string how = fmt::format("process {}, {}", row.pid, w.any("op"));
      if (!w.is_null("join")) how += ", joined by " + w.any("join");
      if (!w.is_null("how")) how += ", " + w.any("how");
      row.details.push_back(how);
    }
    break;
  }
  case Voice::nd7:
    nd7_row(entry, w, home, row);
    break;
  case Voice::other:
    row.text = entry.body_text;
    break;
  }
  if (row.text.size() > row_text_bytes_max) row.text.resize(row_text_bytes_max);
  return row;
}

bool is_routine(const Entry& entry) {
  switch (entry.voice()) {
  case Voice::effect:
    if (entry.kind == "refused") return entry.body.boolean("quiet");
    return entry.kind == "read" || entry.kind == "exit" || entry.kind == "resolve";
  case Voice::nd7:
    return entry.kind == "checkpoint";
  case Voice::intent:
    return entry.kind == "hook";
  case Voice::other:
    return false;
  }
  return false;
}

std::vector<std::string> paths_of(const Entry& entry) {
  std::vector<std::string> paths = texts_member(entry.body, "paths");
  for (const char* key : {"path", "from", "to"}) {
    if (std::string path = path_member(entry.body, key); !path.empty()) paths.push_back(path);
  }
  return paths;
}

bool Timeline::folds(const Entry& entry) const {
  if (!options_.fold) return false;
  if (is_routine(entry)) return true;
  return options_.housekeeping && agent_known_ && entry.voice() == Voice::effect &&
         entry.kind != "refused" && entry.body.text("call").empty();
}

std::vector<Row>& Timeline::place_of(const std::string& call) {
  const auto known = calls_.find(call);
  return call.empty() || known == calls_.end() ? rows_ : rows_[known->second].below;
}

void Timeline::add(const Entry& entry) {
  if (entry.voice() == Voice::intent) ++intents_;
  if (entry.kind == "refused") ++refusals_;
  if (entry.voice() == Voice::nd7 && entry.kind == "start") {
    project_ = path_member(entry.body, "project");
    const std::string agent = entry.body.text("agent");
    agent_known_ = !agent.empty() && agent != "none";
  }
  const bool effect = entry.voice() == Voice::effect;
  if (folds(entry)) {
    std::vector<Row>& rows = place_of(effect ? entry.body.text("call") : std::string());
    if (rows.empty() || !rows.back().kind.empty()) {
      Row fold;
      fold.seq = entry.seq;
      fold.ts = entry.ts;
      fold.voice = entry.voice();
      rows.push_back(std::move(fold));
    }
    const std::int64_t count = entry.kind == "read" ? entry.body.integer("count", 1) : 1;
    rows.back().folded[entry.kind] += static_cast<std::uint64_t>(std::max<std::int64_t>(count, 1));
    return;
  }
  Row row = row_of(entry, options_.home, project_);
  std::vector<Row>& rows = place_of(effect ? row.call : std::string());
  if (options_.fold && effect && !rows.empty() && rows.back().kind == row.kind &&
      rows.back().voice == row.voice && rows.back().text == row.text) {
    ++rows.back().times;
    return;
  }
  rows.push_back(std::move(row));
  if (entry.kind == "tool_call" && !rows_.back().call.empty()) {
    calls_[rows_.back().call] = rows_.size() - 1;
  }
}

} // namespace nd7
