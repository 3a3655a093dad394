// Entries of the log as values for readers (show, sessions, view, export), and the kinds as a
// table. Reading here is lenient: unknown members and kinds are kept; proof is core/verify.h.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace nd7 {

// Who speaks. A claim of the agent is never shown as a fact.
enum class Voice : std::uint8_t {
  intent, // what the agent said it would do or did
  effect, // what the gate performed or saw
  nd7,    // the recorder about itself
  other,  // a source this version does not know
};
Voice voice_of(std::string_view source);

struct KindRow {
  const char* name;
  Voice voice;
  const char* word;   // in the timeline, at most 8 columns
  const char* plural; // in counts: "3 writes"
};
std::span<const KindRow> kinds();
const KindRow* find_kind(std::string_view name);
// "3 writes", "1 exit"; for an unknown kind its own name.
std::string counted(std::uint64_t count, std::string_view kind);

struct Entry {
  std::int64_t v = 0;
  std::string session_id;
  std::uint64_t seq = 0;
  std::int64_t ts = 0;    // ns since 1970
  std::uint64_t mono = 0; // ns since boot, 0 in version 0
  std::string host;
  std::string source;
  std::string kind;
  std::string prev;
  std::string hash;
  std::string body_text; // the raw JSON object; `body` points into it
  JsonObject body;
  Entry() = default;
  Entry(const Entry&) = delete; // body points into body_text
  Entry& operator=(const Entry&) = delete;
  Voice voice() const { return voice_of(source); }
};
// `line` without its newline. Fills `entry` anew.
Result<> read_entry(std::string_view line, Entry& entry);

// A path member: `key`, else the bytes of `key`_b64, else "".
std::string path_member(const JsonObject& body, std::string_view key);
// The elements of an array of strings; empty when it is none.
std::vector<std::string> texts_member(const JsonObject& body, std::string_view key);

// Cuts a stream into lines. Memory: one line, at most log_format::entry_size_bytes_max; of a longer
// one only the first part is given.
class LineSplitter {
public:
  // Calls `each` with every complete line, without its newline; false stops.
  void feed(std::string_view chunk, const std::function<bool(std::string_view line)>& each);
  std::string_view rest() const { return rest_; } // after the last newline

private:
  std::string rest_;
};

} // namespace nd7
