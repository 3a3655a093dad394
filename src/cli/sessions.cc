#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <map>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/log_reader.h"
#include "cli/ui.h"
#include "core/log_format.h"
#include "os/files.h"
#include "session/session.h"
#include "view/paint.h"

namespace nd7 {
namespace {

constexpr std::size_t tail_size_bytes = 256 << 10;

constexpr Option options[] = {
    {"json", 0, nullptr, "print a JSON array"},
};

} // namespace

extern const Usage usage_sessions;
const Usage usage_sessions{
    .name = "sessions",
    .summary = "list the recorded sessions, newest first",
    .options = options,
    .details =
        "State: running; ended (the log is closed by its end entry); torn (nd7 was killed, or "
        "the machine\nstopped); open (hooks of an agent that was started without nd7 run).",
    .example = "nd7 sessions --json | jq '.[].id'",
};

namespace {

struct Summary {
  std::string agent;
  std::string project;
  std::string agent_session;
  std::string state;
  std::int64_t started_ns = 0;
  std::int64_t last_ns = 0;
  std::uint64_t entries = 0;
  std::uint64_t refused = 0;
  std::map<std::string, std::uint64_t> counts; // by kind
};

void read_meta(const SessionInfo& session, Summary& summary) {
  auto text = os::read_file(session.directory + "/" + std::string(log_format::meta_name), 1 << 20);
  if (!text) return;
  auto meta = scan_json_object(*text);
  if (!meta) return;
  summary.agent = meta->text("agent");
  summary.project = path_member(*meta, "project");
  summary.agent_session = meta->text("agent_session");
}

// The end entry has the totals: for a closed session the last lines suffice.
bool from_end_entry(const std::string& file, Summary& summary) {
  auto fd = os::open_file(file, O_RDONLY);
  if (!fd) return false;
  auto size = os::file_size(fd->get());
  if (!size) return false;
  const std::uint64_t from = *size > tail_size_bytes ? *size - tail_size_bytes : 0;
  auto bytes = os::read_at(fd->get(), from, tail_size_bytes);
  if (!bytes || bytes->empty() || bytes->back() != '\n') return false;
  bool found = false;
  Entry entry;
  LineSplitter().feed(*bytes, [&](std::string_view line) {
    if (!read_entry(line, entry)) return true; // the first may be half a line
    summary.entries = entry.seq + 1;
    if (entry.kind == log_format::kind_end && entry.voice() == Voice::nd7) {
      auto counts = scan_json_object(entry.body.find("counts"));
      if (!counts) return true;
      for (const JsonObject::Member& member : counts->members()) {
        // The end entry counts "writes", entries are of kind "write".
        std::string kind = member.key;
        if (find_kind(kind) == nullptr && kind.ends_with('s')) kind.pop_back();
        summary.counts[kind] = static_cast<std::uint64_t>(counts->integer(member.key));
      }
      summary.refused = static_cast<std::uint64_t>(entry.body.integer("refused"));
      summary.last_ns = entry.ts;
      found = true;
    }
    return true;
  });
  if (found) summary.state = "ended";
  return found;
}

Result<> from_all_entries(const std::string& file, const SessionInfo& session, Summary& summary) {
  auto reader = LogReader::open(file);
  if (!reader) return std::unexpected(reader.error());
  bool supervised = false;
  bool closed = false;
  auto read = reader->read([&](const Entry& entry, std::string_view) {
    ++summary.entries;
    ++summary.counts[entry.kind];
    if (entry.kind == "refused") ++summary.refused;
    if (entry.voice() == Voice::nd7 && entry.kind == "start") supervised = true;
    if (entry.voice() == Voice::nd7 && entry.kind == log_format::kind_end) closed = true;
    if (entry.voice() == Voice::intent) {
      if (summary.agent.empty()) summary.agent = entry.source.substr(7);
      if (summary.project.empty()) summary.project = path_member(entry.body, "cwd");
      if (!supervised) closed = entry.kind == "session_end";
    }
    summary.last_ns = entry.ts;
    return true;
  });
  if (!read) return read;
  const bool torn = reader->torn_bytes() > 0;
  if (session.running) {
    summary.state = "running";
  } else if (torn || (supervised && !closed)) {
    summary.state = "torn";
  } else {
    summary.state = closed ? "ended" : "open";
  }
  return {};
}

Summary summarize(const SessionInfo& session) {
  Summary summary;
  summary.started_ns = session.started_ns;
  read_meta(session, summary);
  const std::string file = session.directory + "/" + std::string(log_format::events_name);
  // The lock is still held for a moment after the end entry, while the log is synced.
  if (from_end_entry(file, summary)) return summary;
  if (auto read = from_all_entries(file, session, summary); !read) summary.state = "torn";
  if (session.running) {
    summary.state = "running";
    summary.last_ns = system_clock().wall_ns();
  }
  return summary;
}

std::string as_json(const SessionInfo& session, const Summary& s) {
  JsonWriter counts;
  for (const auto& [kind, count] : s.counts) counts.count(kind, count);
  JsonWriter out;
  out.text("id", session.id).text("state", s.state).number("started_ns", s.started_ns);
  out.number("seconds", s.last_ns > s.started_ns ? (s.last_ns - s.started_ns) / 1'000'000'000 : 0);
  out.text("agent", s.agent).path("project", s.project).text("agent_session", s.agent_session);
  out.count("entries", s.entries).raw("counts", counts.finish()).count("refused", s.refused);
  return out.finish();
}

std::string tilde_of(const std::string& path, const std::string& home) {
  if (path == home) return "~";
  return path.starts_with(home + "/") ? "~" + path.substr(home.size()) : path;
}

std::string what_happened(const Summary& s) {
  std::string text;
  for (const char* kind : {"prompt", "tool_call", "exec", "write", "connect"}) {
    const auto count = s.counts.find(kind);
    if (count == s.counts.end() || count->second == 0) continue;
    text += (text.empty() ? "" : ", ") + counted(count->second, kind);
  }
  return text.empty() ? fmt::format("{} entries", s.entries) : text;
}

Tint tint_of(std::string_view state) {
  if (state == "running") return Tint::green;
  return state == "torn" ? Tint::red : Tint::plain;
}

// Two lines a session, so that the whole id and the project fit into 80 columns.
std::string as_text(const SessionInfo& session, const Summary& s, const std::string& home,
                    std::size_t width, bool color) {
  const std::string agent = s.agent.empty() || s.agent == "none" ? "-" : s.agent;
  const std::string refused = s.refused > 0 ? fmt::format(", {} refused", s.refused) : "";
  std::string first =
      fmt::format("{}  {}  {:>12}  ", visible(session.id), local_date_time(s.started_ns),
                  duration_text(s.last_ns - s.started_ns));
  const std::string second = fmt::format("    {} in {}: {}", visible(agent),
                                         visible(tilde_of(s.project, home)), what_happened(s));
  return first + tinted(tint_of(s.state), s.state, color) + "\n" +
         shorten(second, width > refused.size() ? width - refused.size() : width) +
         tinted(Tint::red, refused, color) + "\n";
}

} // namespace

int cmd_sessions(int argc, char** argv) {
  auto args = parse_options(usage_sessions, argc, argv);
  if (!args) return args.error();
  if (!args->rest().empty()) return usage_error(usage_sessions, "takes no arguments");
  auto places = find_places();
  if (!places) return say_error(places.error());
  auto sessions = list_sessions(*places);
  if (!sessions) return say_error(sessions.error());
  const bool json = args->has("json");
  const bool color = use_color(STDOUT_FILENO);
  if (json) print("[");
  for (std::size_t i = 0; i < sessions->size(); ++i) {
    const SessionInfo& session = (*sessions)[i];
    const Summary summary = summarize(session);
    print(json ? (i == 0 ? "\n " : ",\n ") + as_json(session, summary)
               : as_text(session, summary, places->home, terminal_columns(STDOUT_FILENO), color));
  }
  if (json) print("\n]\n");
  if (sessions->empty() && !json) {
    say("no sessions recorded yet");
    say("try: nd7 run PROGRAM");
  }
  return 0;
}

} // namespace nd7
