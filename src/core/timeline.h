// Entries joined into one story: what the agent said and what really happened, in order, the
// effects of a tool call below it.
//
// Pure: entries in, rows out; view/ turns rows into text or a page. A row says who speaks (Voice),
// so that a view can keep claims and facts visibly apart. Row texts hold bytes as they were logged
// (cut to row_text_bytes_max); escaping them is the view's duty.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/event.h"

namespace nd7 {

inline constexpr std::size_t row_text_bytes_max = 4096;

struct Row {
  std::uint64_t seq = 0;
  std::int64_t ts = 0;
  Voice voice = Voice::other;
  std::string kind;
  std::string call; // tool_use_id: the call's own, or of the call an effect belongs to
  std::int64_t pid = 0;
  std::string text;                 // what happened, one sentence
  std::vector<std::string> notes;   // further lines that are always shown (what is not enforced)
  std::vector<std::string> details; // further lines for those who want more
  std::string rule;                 // of a refusal
  std::string open_with;            // the command that would allow it, empty when none does
  std::uint64_t times = 1;          // repeats in a row, folded
  std::map<std::string, std::uint64_t> folded; // a row without kind: counts by kind
  std::vector<Row> below;                      // effects of a tool call
};

struct TimelineOptions {
  std::string home;         // written as ~ in paths; empty: not
  bool fold = true;         // reads, exits, repeats and the agent's own housekeeping become counts
  bool housekeeping = true; // what the agent's own process does outside any call is folded too
};

// One entry as a row, without joining. `project` is written as "." in paths.
Row row_of(const Entry& entry, const std::string& home, const std::string& project);
// Reads, exits, checkpoints that are fine, refusals nobody needs to be told of.
bool is_routine(const Entry& entry);
// Every path an entry names (path, from, to, paths), absolute.
std::vector<std::string> paths_of(const Entry& entry);

class Timeline {
public:
  explicit Timeline(TimelineOptions options) : options_(std::move(options)) {}
  void add(const Entry& entry);
  const std::vector<Row>& rows() const { return rows_; }
  std::uint64_t intents() const { return intents_; }
  std::uint64_t refusals() const { return refusals_; }
  const std::string& project() const { return project_; }

private:
  bool folds(const Entry& entry) const;
  std::vector<Row>& place_of(const std::string& call);

  TimelineOptions options_;
  std::vector<Row> rows_;
  std::map<std::string, std::size_t> calls_; // tool_use_id -> index in rows_
  std::string project_;
  bool agent_known_ = false; // a known agent runs: what it does outside calls is its own business
  std::uint64_t intents_ = 0;
  std::uint64_t refusals_ = 0;
};

} // namespace nd7
