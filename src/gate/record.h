// The recorder: what the gate did, as entries; refusals kept for those who must be told.
//
// Every effect's entry is appended (in the page cache) before its call is answered. Reads are
// folded: the first read of an object by a process is an entry at once, repeats are counted and
// written at the process's end or a checkpoint.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "core/policy.h"
#include "gate/tracee.h"
#include "session/log_file.h"

namespace nd7 {

// A refusal as it is told to the agent and the person, one per distinct (operation, object).
struct Refusal {
  std::string operation; // "write", "read", "connect", ...
  std::string object;    // path or address as it really was
  std::string rule;
  std::string open_with;
  std::uint64_t seq = 0;
  std::uint64_t times = 1;
  bool untold = true;
};

// Who hears of a refusal besides the log.
enum class Telling : std::uint8_t {
  all,    // the agent at its next word, the person at the end
  person, // the agent's own housekeeping: nothing the model asked for
  none,   // what shells and libraries try all the time: counted and folded
};

struct Counts {
  std::atomic<std::uint64_t> effects{0}, reads{0}, writes{0}, execs{0}, refused{0}, connects{0},
      lost{0};
};

class Recorder {
public:
  Recorder(LogFile& log, std::function<void(const std::string&)> on_failure)
      : log_(log), on_failure_(std::move(on_failure)) {}

  // Starts the body of an effect: pid, start, op, result, call, join, how.
  JsonWriter effect(const Process& process, std::string_view op, int error, const char* how);
  void append(const Process& process, std::string_view kind, JsonWriter& body);
  // A denied action.
  void refuse(Process& process, std::string_view op, std::string_view would,
              std::string_view object, const Verdict& verdict,
              std::function<void(JsonWriter&)> members, Telling telling = Telling::all);
  void read(Process& process, std::string_view op, const std::string& path, const char* how);
  void flush_reads(Process& process);
  // An entry of source "nd7" or an intent.
  std::uint64_t note(std::string_view source, std::string_view kind, std::string_view body);

  // Signs and syncs what is there, before something that cannot be taken back.
  void checkpoint() { (void)log_.checkpoint(); } // a failure shows at the next append
  // Refusals that happened since they were last told, oldest first; told afterwards.
  std::vector<Refusal> take_untold();
  std::vector<Refusal> all_refusals();
  // This object's refusal was told before it happened (an agent whose result hook does not come).
  void told_before(const std::string& object);
  // Called for each distinct refusal, e.g. to wake `show --follow` readers or print a line.
  std::function<void(const Process&, const Refusal&)> on_refusal;
  Counts counts;
  bool failed() const { return failed_; }

private:
  LogFile& log_;
  std::function<void(const std::string&)> on_failure_;
  std::atomic<bool> failed_{false};
  std::mutex lock_;
  std::deque<Refusal> refusals_;
  std::set<std::string> told_before_;
  std::map<std::pair<std::string, std::string>, std::size_t> known_; // distinct -> index
};

} // namespace nd7
