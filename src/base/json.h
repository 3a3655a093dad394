// JSON at nd7's borders: a strict scanner for what others wrote, a canonical writer for our own.
//
// The scanner validates the whole text (RFC 8259, strict UTF-8, paired surrogates, no duplicate
// keys in one object, bounded depth and size) and yields the members of one object as raw spans of
// the input; nothing is re-serialised, so hashes are over the bytes as received.
// The writer emits one form only: members in the order given, integers only, no spaces, the short
// escapes plus \u00xx for other control characters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace nd7 {

struct JsonLimits {
  std::size_t size_bytes_max = std::size_t{64} << 20;
  unsigned depth_max = 128;
};

// One object's members, in order. Spans point into the scanned text, which must outlive it.
class JsonObject {
public:
  struct Member {
    std::string key;        // unescaped
    std::string_view value; // raw JSON of the value
  };
  const std::vector<Member>& members() const { return members_; }
  bool has(std::string_view key) const { return find(key).data() != nullptr; }
  std::string_view find(std::string_view key) const; // raw; data() == nullptr when absent
  // Typed readers: a default when absent or of another type.
  std::string text(std::string_view key, std::string_view otherwise = {}) const;
  std::int64_t integer(std::string_view key, std::int64_t otherwise = 0) const;
  bool boolean(std::string_view key, bool otherwise = false) const;

  std::vector<Member> members_;
};

// Scans `text`, which must be exactly one JSON object (white space around it is allowed).
// Errors name the byte offset: "json: duplicate key 'a' at byte 17".
Result<JsonObject> scan_json_object(std::string_view text, const JsonLimits& limits = {});
// The raw elements of an array span (already validated by the scan it came from, or validated now).
Result<std::vector<std::string_view>> scan_json_array(std::string_view text,
                                                      const JsonLimits& limits = {});
// Unescapes a raw string span, quotes included. Empty when it is not a string.
std::string json_unquote(std::string_view raw);
// Quotes for output. Bytes that are not UTF-8 become U+FFFD; use path() below to keep them.
std::string json_quote(std::string_view text);
bool is_utf8(std::string_view bytes);
std::string base64(std::string_view bytes);
std::string base64_decode(std::string_view text); // empty on malformed input

// Builds one object. finish() closes it and returns the text.
class JsonWriter {
public:
  JsonWriter& text(std::string_view key, std::string_view value);
  JsonWriter& number(std::string_view key, std::int64_t value);
  JsonWriter& count(std::string_view key, std::uint64_t value);
  JsonWriter& boolean(std::string_view key, bool value);
  JsonWriter& null(std::string_view key);
  JsonWriter& raw(std::string_view key, std::string_view json); // already canonical JSON
  // A path or other byte string: under `key` when it is UTF-8, else base64 under `key`_b64.
  JsonWriter& path(std::string_view key, std::string_view bytes);
  JsonWriter& texts(std::string_view key, const std::vector<std::string>& values);
  std::string finish();

private:
  void begin(std::string_view key);
  std::string out_ = "{";
};

} // namespace nd7
