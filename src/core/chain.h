// The writer's half of the chain: an entry's bytes, its hash, the link to the next, the head.
// The reader's half is core/verify.h, which derives all of this anew.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nd7 {

// BLAKE3, 64 lower-case hex digits. The first call of the process looks at the CPU and must be made
// before threads are started (prepare_hashing() does).
std::string blake3_hex(std::string_view bytes);
void prepare_hashing();

// `prev` of entry 0.
std::string first_link(std::string_view session_id);

struct Envelope {
  std::string_view session_id;
  std::uint64_t seq = 0;
  std::int64_t ts = 0;    // ns since 1970, UTC
  std::uint64_t mono = 0; // ns since boot
  std::string_view host;
  std::string_view source;
  std::string_view kind;
  std::string_view prev; // 64 hex digits
  std::string_view body; // a JSON object on one line
};
struct SealedEntry {
  std::string line; // newline included
  std::string hash;
};
SealedEntry seal_entry(const Envelope& envelope);

struct Head {
  std::uint64_t seq = 0;
  std::string hash;
  friend bool operator==(const Head&, const Head&) = default;
};
std::string head_text(const Head& head);               // "<seq> <hash>\n"
std::optional<Head> parse_head(std::string_view text); // exactly that, nothing else

// What a checkpoint's signature is over.
std::string checkpoint_message(std::string_view session_id, std::uint64_t count,
                               std::string_view head_hash, std::int64_t ts);

} // namespace nd7
