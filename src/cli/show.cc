#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>

#include "base/bytes.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/log_reader.h"
#include "cli/ui.h"
#include "core/log_format.h"
#include "core/timeline.h"
#include "os/files.h"
#include "session/session.h"
#include "view/text.h"

namespace nd7 {
namespace {

constexpr std::int64_t ns_per_second = 1'000'000'000;
constexpr long follow_interval_ns = 100'000'000;

constexpr Option options[] = {
    {"follow", 'f', nullptr, "go on as the session does, until it ends"},
    {"verbose", 'v', nullptr, "everything: reads, exits, the agent's housekeeping, whole texts"},
    {"only", 'o', "KIND", "only entries of this kind (write, exec, refused, ...); may be repeated"},
    {"since", 's', "WHEN", "from an entry's number, or a time: 14:30, 2026-03-01 14:30, 10m, 2h"},
    {"path", 'p', "P", "only entries that name P or something below it"},
    {"pid", 0, "N", "only effects of this process"},
    {"json", 0, nullptr, "print the entries as they stand in the log, one a line"},
};

} // namespace

extern const Usage usage_show;
const Usage usage_show{
    .name = "show",
    .summary = "tell the story of a session",
    .arguments = "[ID]",
    .options = options,
    .details =
        "ID may be any unique prefix, or the agent's own session id; none is the newest.\n"
        "Marks: > the agent said it, * the kernel saw it, ! nd7 refused it, # nd7 itself.\n"
        "What a tool call did stands below it. A claim of the agent is never shown as a fact.",
    .example = "nd7 show --follow\nnd7 show 0199c2 --only write --path src",
};

namespace {

struct Filter {
  std::vector<std::string> kinds;
  std::string path;
  std::optional<std::int64_t> pid;
  std::uint64_t since_entry = 0;
  std::int64_t since_ns = 0;

  bool narrows() const { return !kinds.empty() || !path.empty() || pid; }
  bool takes(const Entry& entry) const;
};

bool Filter::takes(const Entry& entry) const {
  if (entry.seq < since_entry || entry.ts < since_ns) return false;
  if (!kinds.empty() && std::find(kinds.begin(), kinds.end(), entry.kind) == kinds.end())
    return false;
  if (pid && (!entry.body.has("pid") || entry.body.integer("pid", -1) != *pid)) return false;
  if (path.empty()) return true;
  const std::vector<std::string> paths = paths_of(entry);
  return std::any_of(paths.begin(), paths.end(), [&](const std::string& p) {
    return p == path || p.starts_with(path == "/" ? path : path + "/");
  });
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "10m" ago, "14:30" today, "2026-03-01 14:30[:05]" local, with Z in UTC.
std::optional<std::int64_t> parse_time(std::string text, std::int64_t now_ns) {
  if (text.size() > 1) {
    const std::string_view units = "smhd";
    constexpr std::int64_t seconds[] = {1, 60, 3600, 86400};
    const std::size_t unit = units.find(text.back());
    if (unit != std::string_view::npos) {
      const auto count = number(std::string_view(text).substr(0, text.size() - 1));
      if (count && *count >= 0 && *count < 1'000'000) {
        return now_ns - *count * seconds[unit] * ns_per_second;
      }
    }
  }
  const bool utc = text.ends_with('Z');
  if (utc) text.pop_back();
  const std::time_t now = now_ns / ns_per_second;
  std::tm tm{};
  utc ? ::gmtime_r(&now, &tm) : ::localtime_r(&now, &tm);
  tm.tm_sec = 0;
  for (const char* form : {"%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M",
                           "%Y-%m-%dT%H:%M", "%H:%M:%S", "%H:%M", "%Y-%m-%d"}) {
    std::tm parsed = tm;
    if (std::string_view(form) == "%Y-%m-%d") parsed.tm_hour = parsed.tm_min = 0;
    const char* end = ::strptime(text.c_str(), form, &parsed);
    if (end == nullptr || *end != '\0') continue;
    parsed.tm_isdst = -1;
    return (utc ? ::timegm(&parsed) : ::mktime(&parsed)) * ns_per_second;
  }
  return std::nullopt;
}

std::expected<Filter, int> filter_of(const Arguments& args) {
  Filter filter;
  for (const std::string& kind : args.values("only")) {
    if (find_kind(kind) == nullptr) {
      std::vector<std::string> names;
      for (const KindRow& row : kinds()) names.emplace_back(row.name);
      std::string text = fmt::format("no kind of entry '{}'", visible(kind));
      if (auto meant = closest(kind, names)) text += fmt::format(" (did you mean {}?)", *meant);
      return std::unexpected(usage_error(usage_show, text));
    }
    filter.kinds.push_back(kind);
  }
  if (args.has("pid")) {
    filter.pid = number(args.value("pid"));
    if (!filter.pid) return std::unexpected(usage_error(usage_show, "--pid takes a number"));
  }
  if (const std::string since = args.value("since"); !since.empty()) {
    if (const auto entry = number(since); entry && *entry >= 0) {
      filter.since_entry = static_cast<std::uint64_t>(*entry);
    } else if (const auto time = parse_time(since, system_clock().wall_ns())) {
      filter.since_ns = *time;
    } else {
      return std::unexpected(
          usage_error(usage_show, "--since takes an entry's number or a time like 14:30 or 10m"));
    }
  }
  if (const std::string path = args.value("path"); !path.empty()) {
    std::error_code ignored; // the log's paths are resolved; what is gone stays as it was typed
    const auto full = std::filesystem::weakly_canonical(std::filesystem::absolute(path), ignored);
    filter.path = full.lexically_normal().string();
    if (filter.path.size() > 1 && filter.path.ends_with('/')) filter.path.pop_back();
  }
  return filter;
}

// Reads on until the session ends; `each` gets what the filter takes.
template <class Each> Result<> follow(LogReader& reader, const std::string& directory, Each each) {
  bool ended = false;
  for (;;) {
    // Asked before reading: what was written until the lock went is then read.
    const bool running = os::is_locked(directory + "/" + std::string(log_format::lock_name));
    auto read = reader.read([&](const Entry& entry, std::string_view line) {
      each(entry, line);
      if (entry.voice() == Voice::nd7 && entry.kind == log_format::kind_end) ended = true;
      return true;
    });
    if (!read) return read;
    if (output_gone()) return {};
    if (ended || !running) return {};
    const timespec pause{0, follow_interval_ns};
    ::nanosleep(&pause, nullptr);
  }
}

// Rows as they come: an effect is indented below its call, with a reminder when another call's
// effects stand between.
class Stream {
public:
  Stream(TimelineOptions timeline, TextOptions text) : options_(std::move(timeline)), text_(text) {}

  void add(const Entry& entry) {
    if (entry.voice() == Voice::nd7 && entry.kind == "start") {
      project_ = path_member(entry.body, "project");
      agent_known_ = !entry.body.text("agent").empty() && entry.body.text("agent") != "none";
    }
    const bool effect = entry.voice() == Voice::effect;
    const bool own =
        agent_known_ && effect && entry.kind != "refused" && entry.body.text("call").empty();
    if (options_.fold && (is_routine(entry) || own)) {
      ++folded_[entry.kind];
      return;
    }
    if (!folded_.empty()) {
      Row fold;
      fold.folded.swap(folded_);
      print(row_text(fold, text_));
    }
    const Row row = row_of(entry, options_.home, project_);
    const bool below = effect && !row.call.empty();
    if (below && row.call != shown_call_) {
      if (const auto known = calls_.find(row.call); known != calls_.end()) {
        Row reminder = known->second;
        reminder.text = "(again) " + reminder.text;
        print(row_text(reminder, text_));
      }
      shown_call_ = row.call;
    }
    if (entry.kind == "tool_call" && entry.voice() == Voice::intent) {
      calls_[row.call] = row;
      shown_call_ = row.call;
    }
    if (entry.kind == "tool_result") calls_.erase(row.call);
    print(row_text(row, text_, below ? 1 : 0));
  }

private:
  TimelineOptions options_;
  TextOptions text_;
  std::string project_;
  std::string shown_call_;
  std::map<std::string, Row> calls_; // still open
  std::map<std::string, std::uint64_t> folded_;
  bool agent_known_ = false;
};

int show_json(LogReader& reader, const std::string& directory, const Filter& filter,
              bool following) {
  const auto each = [&](const Entry& entry, std::string_view line) {
    if (!filter.takes(entry)) return;
    print(line);
    print("\n");
  };
  auto done = following ? follow(reader, directory, each)
                        : reader.read([&](const Entry& entry, std::string_view line) {
                            each(entry, line);
                            return true;
                          });
  return done ? 0 : say_error(done.error());
}

Result<Timeline> tell(const std::string& file, const TimelineOptions& how, const Filter& filter,
                      std::uint64_t& malformed, std::uint64_t& torn, bool& ended) {
  auto reader = LogReader::open(file);
  if (!reader) return std::unexpected(reader.error());
  Timeline timeline(how);
  auto read = reader->read([&](const Entry& entry, std::string_view) {
    // The lock is held for a moment after the end entry, while the log is synced.
    ended = ended || (entry.source == "nd7" && entry.kind == "end");
    if (filter.takes(entry)) timeline.add(entry);
    return true;
  });
  if (!read) return std::unexpected(read.error());
  malformed = reader->malformed();
  torn = reader->torn_bytes();
  return timeline;
}

} // namespace

int cmd_show(int argc, char** argv) {
  auto args = parse_options(usage_show, argc, argv);
  if (!args) return args.error();
  if (args->rest().size() > 1) return usage_error(usage_show, "name one session");
  auto filter = filter_of(*args);
  if (!filter) return filter.error();
  auto places = find_places();
  if (!places) return say_error(places.error());
  auto session = find_session(*places, args->rest().empty() ? "" : args->rest().front());
  if (!session) return say_error(session.error());
  const std::string file = session->directory + "/" + std::string(log_format::events_name);
  const bool following = args->has("follow");
  const bool verbose = args->has("verbose");
  TimelineOptions options_of{.home = places->home, .fold = !verbose && !filter->narrows()};
  const TextOptions text{.columns = terminal_columns(STDOUT_FILENO),
                         .color = use_color(STDOUT_FILENO),
                         .verbose = verbose};

  if (following || args->has("json")) {
    auto reader = LogReader::open(file);
    if (!reader) return say_error(reader.error());
    if (args->has("json")) return show_json(*reader, session->directory, *filter, following);
    Stream stream(options_of, text);
    auto done = follow(*reader, session->directory, [&](const Entry& entry, std::string_view) {
      if (filter->takes(entry)) stream.add(entry);
    });
    return done ? 0 : say_error(done.error());
  }

  std::uint64_t malformed = 0;
  std::uint64_t torn = 0;
  bool ended = false;
  auto timeline = tell(file, options_of, *filter, malformed, torn, ended);
  // No hook spoke (not installed, or another program): then nothing is the agent's housekeeping.
  if (timeline && timeline->intents() == 0 && options_of.fold) {
    options_of.housekeeping = false;
    timeline = tell(file, options_of, *filter, malformed, torn, ended);
  }
  if (!timeline) return say_error(timeline.error());
  print(fmt::format("session {}{}\n", session->id, session->running && !ended ? " (running)" : ""));
  print(legend_text(text));
  print(timeline_text(*timeline, text));
  if (malformed > 0)
    say(fmt::format("{} lines are no entries; try nd7 verify {}", malformed, session->id));
  if (torn > 0 && !session->running) say(fmt::format("the last {} bytes are a torn entry", torn));
  return 0;
}

} // namespace nd7
