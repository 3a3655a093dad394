// Constants of the log on disk; docs/log-format.md is the specification in words.
//
//   {"v":1,"session_id":"..","seq":0,"ts":..,"mono":..,"host":"..","source":"..","kind":"..",
//    "prev":"<64 hex>","body":{..},"hash":"<64 hex>"}\n
//
// One entry a line, members in this order, hash last. `hash` is BLAKE3 over the bytes of the line
// without its newline and with `,"hash":"<64 hex>"` cut out. `prev` is the hash of the entry
// before; of entry 0 it is BLAKE3 of the session id's bytes. Version 0 has no `mono`.
// Both the writer (core/chain.h) and the verifier (core/verify.h) include this and nothing of each
// other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace nd7::log_format {

inline constexpr std::int64_t version = 1;
inline constexpr std::int64_t version_min = 0;

inline constexpr std::size_t hash_hex_size = 64;
inline constexpr std::string_view hash_prefix = ",\"hash\":\"";
inline constexpr std::string_view hash_suffix = "\"}";
// What is cut out before hashing, less the closing brace that stays.
inline constexpr std::size_t tail_size = hash_prefix.size() + hash_hex_size + hash_suffix.size();

// A line longer than this (newline included) is malformed; the writer refuses to make one.
inline constexpr std::size_t entry_size_bytes_max = std::size_t{16} << 20;
// Nesting of the whole line. The writer takes bodies up to JsonLimits' 128 levels.
inline constexpr unsigned depth_max = 160;

// Names in sessions/ID/.
inline constexpr std::string_view events_name = "events.ndjson";
inline constexpr std::string_view head_name = "head";
inline constexpr std::string_view lock_name = "lock";
inline constexpr std::string_view meta_name = "meta.json";
// "<seq> <hash>\n" with a sequence number of up to 20 digits.
inline constexpr std::size_t head_size_bytes_max = 20 + 1 + hash_hex_size + 1;

// The first line of what a checkpoint signs; the next are session id, count, head and time (ns).
inline constexpr std::string_view checkpoint_label = "nd7 checkpoint 1";

inline constexpr std::string_view source_nd7 = "nd7";
inline constexpr std::string_view kind_checkpoint = "checkpoint";
inline constexpr std::string_view kind_gap = "gap";
inline constexpr std::string_view kind_end = "end";

} // namespace nd7::log_format
