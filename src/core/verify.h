// Verification: bytes in, findings out. Everything is derived anew from the bytes; the unit does
// not include the writer (core/chain.h), nor any code of nd7's but the JSON scanner.
//
// What it proves: the entries are those that were chained, in this order, of this session. What it
// cannot prove alone: that nothing was cut off the end or that the whole chain was not made anew.
// For that there is the attestation: a checkpoint's signature covers all entries before it. So the
// answer has three parts that are never one word: bytes consistent; attested up to where, by whom
// and when; how much stands after that without attestation.
// Memory: one line, at most log_format::entry_size_bytes_max.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace nd7 {

enum class FaultKind : std::uint8_t {
  malformed,       // a line that is no entry
  unknown_version, // made by a newer nd7: cannot be checked
  changed,         // the bytes do not give the hash the entry states
  transplanted,    // a sound entry of another session
  missing,         // one or more entries before this one are gone
  reordered,       // an entry that belongs elsewhere
  duplicate,       // an entry stands twice
  unlinked,        // sound by itself, but not made after the entry before it
  after_end,       // something follows the entry that closes the session
  cut,             // the head names an entry beyond the end of the file
  head_disagrees,  // the head is no hash of this chain where it should be
  bad_checkpoint,  // count or head of a checkpoint is not the chain's
  bad_signature,   // a checkpoint's signature is not the key's
};
const char* fault_name(FaultKind kind); // "changed", for --json: stable

struct Fault {
  FaultKind kind = FaultKind::malformed;
  std::uint64_t entry = 0;        // the sequence number at which the chain stops being right
  std::uint64_t line = 0;         // from 1
  std::uint64_t offset_bytes = 0; // of the line's start
  std::string detail;             // a sentence about what was found, for people
};

struct Attestation {
  std::uint64_t entries = 0; // entries 0 .. entries-1 are covered; 0: none
  std::string key_id;
  std::int64_t ts = 0; // ns since 1970, covered by the signature
};

enum class SignatureAnswer : std::uint8_t { good, bad, unknown_key };
using SignatureChecker = std::function<SignatureAnswer(
    std::string_view key_id, std::string_view message, std::string_view signature_hex)>;

// One sound entry, as it passes. The views live during the call.
struct CheckedEntry {
  std::uint64_t seq;
  std::int64_t ts;
  std::string_view source; // raw JSON strings, quotes included
  std::string_view kind;
  std::string_view body;
};

class Reporter {
public:
  virtual ~Reporter() = default;
  virtual void entry(const CheckedEntry&) {}
  virtual void checkpoint(std::uint64_t /*entry*/, SignatureAnswer /*answer*/) {}
  // The first fault. Nothing after it is checked or reported.
  virtual void fault(const Fault& fault) = 0;
};

struct VerifyOptions {
  std::string session_id = {};          // the id it should have; empty: the first entry's own
  std::optional<std::string> head = {}; // content of the head file; nullopt: there is none
  bool live = false; // somebody is appending: the head may be behind, the last line unfinished
  SignatureChecker check_signature = {}; // empty: every key is unknown
};

enum class HeadState : std::uint8_t { missing, agrees, one_behind, behind, wrong };

struct VerifyResult {
  bool consistent = false;
  bool checkable = true;     // false: unknown_version
  std::uint64_t entries = 0; // sound entries before the fault or the end
  std::uint64_t size_bytes = 0;
  std::uint64_t torn_bytes = 0; // after the last newline: a write that a crash cut short
  std::uint64_t gaps = 0;       // `gap` entries: loss that the log itself tells
  bool ended = false;           // the entry that closes the session was seen
  HeadState head = HeadState::missing;
  std::string session_id;
  std::string last_hash;
  Attestation attested;                  // by the last checkpoint with a good signature
  std::uint64_t unknown_checkpoints = 0; // signed by a key that is not known here
  // Entries after the attesting checkpoint. The checkpoint's own entry is not counted: what it says
  // is signed.
  std::uint64_t unattested_tail() const;
};

class Verifier {
public:
  Verifier(VerifyOptions options, Reporter& reporter);
  ~Verifier();
  Verifier(const Verifier&) = delete;
  Verifier& operator=(const Verifier&) = delete;
  void feed(std::string_view chunk);
  VerifyResult finish();

private:
  struct State;
  std::unique_ptr<State> state_;
};

// A whole log at once, for tests, fuzzers and small files.
VerifyResult verify_log(std::string_view bytes, VerifyOptions options, Reporter& reporter);

} // namespace nd7
