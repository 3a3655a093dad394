#include "base/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <deque>

namespace nd7 {
namespace {

constexpr char hex_digits[] = "0123456789abcdef";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

unsigned char byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

// Length of the well-formed UTF-8 sequence at `at` (Unicode table 3-7: no overlong forms, no
// surrogates, nothing above U+10FFFF), 0 when there is none.
std::size_t utf8_length(std::string_view s, std::size_t at) {
  const unsigned char a = byte_at(s, at);
  if (a < 0x80) return 1;
  const auto next = [&](std::size_t i, unsigned low, unsigned high) {
    return at + i < s.size() && byte_at(s, at + i) >= low && byte_at(s, at + i) <= high;
  };
  if (a >= 0xc2 && a <= 0xdf) return next(1, 0x80, 0xbf) ? 2 : 0;
  if (a >= 0xe0 && a <= 0xef) {
    const unsigned low = a == 0xe0 ? 0xa0 : 0x80;
    const unsigned high = a == 0xed ? 0x9f : 0xbf;
    return next(1, low, high) && next(2, 0x80, 0xbf) ? 3 : 0;
  }
  if (a >= 0xf0 && a <= 0xf4) {
    const unsigned low = a == 0xf0 ? 0x90 : 0x80;
    const unsigned high = a == 0xf4 ? 0x8f : 0xbf;
    return next(1, low, high) && next(2, 0x80, 0xbf) && next(3, 0x80, 0xbf) ? 4 : 0;
  }
  return 0;
}

void append_utf8(std::string& out, unsigned code) {
  const auto put = [&](unsigned byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

// Eight bytes at once: true when none of them is a control character, '"', '\\' or above 0x7e.
bool eight_plain(const char* p) {
  std::uint64_t v;
  std::memcpy(&v, p, sizeof v);
  constexpr std::uint64_t ones = 0x0101010101010101;
  constexpr std::uint64_t tops = ones << 7;
  const auto has_zero = [](std::uint64_t x) { return (x - ones) & ~x & tops; };
  const std::uint64_t below_space = (v - ones * 0x20) & ~v & tops;
  return ((v & tops) | below_space | has_zero(v ^ (ones * '"')) | has_zero(v ^ (ones * '\\'))) == 0;
}

// The four hex digits at `at`, or -1.
int hex4(std::string_view s, std::size_t at) {
  if (at + 4 > s.size()) return -1;
  int value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const int digit = hex_value(s[at + i]);
    if (digit < 0) return -1;
    value = value << 4 | digit;
  }
  return value;
}

// Content of a string between its quotes; the text was validated before.
std::string unescape(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (std::size_t i = 0; i < s.size();) {
    if (s[i] != '\\' || i + 1 >= s.size()) {
      const std::size_t stop = std::min(s.find('\\', i + 1), s.size());
      out.append(s.substr(i, stop - i));
      i = stop;
      continue;
    }
    const char c = s[i + 1];
    i += 2;
    switch (c) {
    case 'b':
      out += '\b';
      break;
    case 'f':
      out += '\f';
      break;
    case 'n':
      out += '\n';
      break;
    case 'r':
      out += '\r';
      break;
    case 't':
      out += '\t';
      break;
    case 'u': {
      const int first = hex4(s, i);
      if (first < 0) return {};
      i += 4;
      unsigned code = static_cast<unsigned>(first);
      if (code >= 0xd800 && code < 0xdc00) {
        const int second = hex4(s, i + 2);
        if (second < 0) return {};
        i += 6;
        code = 0x10000 + ((code - 0xd800) << 10) + (static_cast<unsigned>(second) - 0xdc00);
      }
      append_utf8(out, code);
      break;
    }
    default:
      out += c;
    }
  }
  return out;
}

// One validating pass. Members or elements of the outermost container are handed to `top`.
class Scanner {
public:
  Scanner(std::string_view text, const JsonLimits& limits) : s_(text), limits_(limits) {}

  struct Top {
    std::vector<JsonObject::Member>* members = nullptr;
    std::vector<std::string_view>* elements = nullptr;
  };

  Result<> run(char open, const Top& top) {
    if (s_.size() > limits_.size_bytes_max) {
      return fail("json: longer than " + std::to_string(limits_.size_bytes_max) + " bytes");
    }
    space();
    if (at_ >= s_.size() || s_[at_] != open) {
      error(open == '{' ? "expected an object" : "expected an array");
    } else if (value(1, &top)) {
      space();
      if (at_ != s_.size()) error("text after the end");
    }
    if (!error_.empty()) return fail("json: " + error_);
    return {};
  }
  // A lone string, quotes included, and nothing else.
  bool run_string() { return !s_.empty() && s_[0] == '"' && string(nullptr) && at_ == s_.size(); }

private:
  struct Key {
    std::string_view text;
    std::size_t offset;
  };

  bool error(std::string_view what) { return error(what, at_); }
  bool error(std::string_view what, std::size_t offset) {
    if (error_.empty()) error_ = std::string(what) + " at byte " + std::to_string(offset);
    return false;
  }

  void space() {
    while (at_ < s_.size() &&
           (s_[at_] == ' ' || s_[at_] == '\n' || s_[at_] == '\r' || s_[at_] == '\t')) {
      ++at_;
    }
  }

  bool literal(std::string_view word) {
    if (s_.substr(at_, word.size()) != word) return error("unknown word");
    at_ += word.size();
    return true;
  }

  bool digits() {
    const std::size_t start = at_;
    while (at_ < s_.size() && s_[at_] >= '0' && s_[at_] <= '9') ++at_;
    return at_ > start || error("expected a digit");
  }

  bool number() {
    if (s_[at_] == '-') ++at_;
    if (at_ < s_.size() && s_[at_] == '0') {
      ++at_;
    } else if (!digits()) {
      return false;
    }
    if (at_ < s_.size() && s_[at_] == '.') {
      ++at_;
      if (!digits()) return false;
    }
    if (at_ < s_.size() && (s_[at_] == 'e' || s_[at_] == 'E')) {
      ++at_;
      if (at_ < s_.size() && (s_[at_] == '+' || s_[at_] == '-')) ++at_;
      if (!digits()) return false;
    }
    return true;
  }

  bool escape() {
    if (at_ + 1 >= s_.size()) return error("unfinished string");
    const char c = s_[at_ + 1];
    if (c != 'u') {
      if (std::string_view("\"\\/bfnrt").find(c) == std::string_view::npos) {
        return error("unknown escape");
      }
      at_ += 2;
      return true;
    }
    const int first = hex4(s_, at_ + 2);
    if (first < 0) return error("bad \\u escape");
    if (first >= 0xdc00 && first < 0xe000) return error("lone surrogate");
    if (first >= 0xd800 && first < 0xdc00) {
      const int second = s_.substr(at_ + 6, 2) == "\\u" ? hex4(s_, at_ + 8) : -1;
      if (second < 0xdc00 || second >= 0xe000) return error("lone surrogate");
      at_ += 6;
    }
    at_ += 6;
    return true;
  }

  // At the opening quote; afterwards behind the closing one.
  bool string(bool* has_escapes) {
    ++at_;
    for (;;) {
      while (at_ + 8 <= s_.size() && eight_plain(s_.data() + at_)) at_ += 8;
      if (at_ >= s_.size()) return error("unfinished string");
      const unsigned char c = byte_at(s_, at_);
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c == '\\') {
        if (has_escapes != nullptr) *has_escapes = true;
        if (!escape()) return false;
      } else if (c < 0x20) {
        return error("control character in a string");
      } else if (c < 0x80) {
        ++at_;
      } else {
        const std::size_t length = utf8_length(s_, at_);
        if (length == 0) return error("not UTF-8");
        at_ += length;
      }
    }
  }

  bool unique_keys(std::size_t base) {
    const auto begin = keys_.begin() + static_cast<std::ptrdiff_t>(base);
    if (keys_.size() - base <= 8) {
      for (auto a = begin; a != keys_.end(); ++a) {
        for (auto b = begin; b != a; ++b) {
          if (a->text == b->text) return duplicate(*a);
        }
      }
      return true;
    }
    std::stable_sort(begin, keys_.end(),
                     [](const Key& a, const Key& b) { return a.text < b.text; });
    const auto twin = std::adjacent_find(
        begin, keys_.end(), [](const Key& a, const Key& b) { return a.text == b.text; });
    return twin == keys_.end() || duplicate(*(twin + 1));
  }

  bool duplicate(const Key& key) {
    return error("duplicate key '" + std::string(key.text.substr(0, 64)) + "'", key.offset);
  }

  bool object(unsigned depth, const Top* top) {
    const std::size_t base = keys_.size();
    ++at_;
    space();
    if (at_ < s_.size() && s_[at_] == '}') {
      ++at_;
      return true;
    }
    for (;;) {
      if (at_ >= s_.size() || s_[at_] != '"') return error("expected a key");
      const std::size_t key_at = at_;
      bool escaped = false;
      if (!string(&escaped)) return false;
      std::string_view key = s_.substr(key_at + 1, at_ - key_at - 2);
      if (escaped) key = unescaped_.emplace_back(unescape(key));
      keys_.push_back({key, key_at});
      space();
      if (at_ >= s_.size() || s_[at_] != ':') return error("expected ':'");
      ++at_;
      space();
      const std::size_t value_at = at_;
      if (!value(depth + 1, nullptr)) return false;
      if (top != nullptr && top->members != nullptr) {
        top->members->push_back({std::string(key), s_.substr(value_at, at_ - value_at)});
      }
      space();
      if (at_ < s_.size() && s_[at_] == ',') {
        ++at_;
        space();
        continue;
      }
      if (at_ >= s_.size() || s_[at_] != '}') return error("expected ',' or '}'");
      ++at_;
      if (!unique_keys(base)) return false;
      keys_.resize(base);
      return true;
    }
  }

  bool array(unsigned depth, const Top* top) {
    ++at_;
    space();
    if (at_ < s_.size() && s_[at_] == ']') {
      ++at_;
      return true;
    }
    for (;;) {
      const std::size_t value_at = at_;
      if (!value(depth + 1, nullptr)) return false;
      if (top != nullptr && top->elements != nullptr) {
        top->elements->push_back(s_.substr(value_at, at_ - value_at));
      }
      space();
      if (at_ < s_.size() && s_[at_] == ',') {
        ++at_;
        space();
        continue;
      }
      if (at_ >= s_.size() || s_[at_] != ']') return error("expected ',' or ']'");
      ++at_;
      return true;
    }
  }

  // Recursion is bounded by depth_max.
  bool value(unsigned depth, const Top* top) {
    if (at_ >= s_.size()) return error("unexpected end");
    const char c = s_[at_];
    if ((c == '{' || c == '[') && depth > limits_.depth_max) return error("nested too deep");
    switch (c) {
    case '{':
      return object(depth, top);
    case '[':
      return array(depth, top);
    case '"':
      return string(nullptr);
    case 't':
      return literal("true");
    case 'f':
      return literal("false");
    case 'n':
      return literal("null");
    default:
      break;
    }
    if (c == '-' || (c >= '0' && c <= '9')) return number();
    return error("unexpected character");
  }

  std::string_view s_;
  JsonLimits limits_;
  std::size_t at_ = 0;
  std::string error_;
  std::vector<Key> keys_;             // of all objects that are open, outermost first
  std::deque<std::string> unescaped_; // owns the keys that had escapes; addresses stay
};

bool is_json_string(std::string_view raw) {
  return raw.size() >= 2 && Scanner(raw, {}).run_string();
}

constexpr char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t run = i;
    while (i + 8 <= text.size() && eight_plain(text.data() + i)) i += 8;
    out.append(text.substr(run, i - run));
    if (i >= text.size()) break;
    const unsigned char c = byte_at(text, i);
    if (c >= 0x80) {
      const std::size_t length = utf8_length(text, i);
      if (length == 0) {
        out += "\xef\xbf\xbd";
        ++i;
      } else {
        out.append(text.substr(i, length));
        i += length;
      }
      continue;
    }
    ++i;
    switch (c) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\b':
      out += "\\b";
      break;
    case '\f':
      out += "\\f";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    default:
      if (c < 0x20) {
        out += "\\u00";
        out += hex_digits[c >> 4];
        out += hex_digits[c & 15];
      } else {
        out += static_cast<char>(c);
      }
    }
  }
  out += '"';
}

} // namespace

std::string_view JsonObject::find(std::string_view key) const {
  for (const Member& member : members_) {
    if (member.key == key) return member.value;
  }
  return {};
}

std::string JsonObject::text(std::string_view key, std::string_view otherwise) const {
  const std::string_view raw = find(key);
  if (raw.size() < 2 || raw.front() != '"') return std::string(otherwise);
  return json_unquote(raw);
}

std::int64_t JsonObject::integer(std::string_view key, std::int64_t otherwise) const {
  const std::string_view raw = find(key);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(raw.data(), raw.data() + raw.size(), value);
  if (raw.empty() || error != std::errc() || end != raw.data() + raw.size()) return otherwise;
  return value;
}

bool JsonObject::boolean(std::string_view key, bool otherwise) const {
  const std::string_view raw = find(key);
  if (raw == "true") return true;
  if (raw == "false") return false;
  return otherwise;
}

Result<JsonObject> scan_json_object(std::string_view text, const JsonLimits& limits) {
  JsonObject object;
  if (auto done = Scanner(text, limits).run('{', {.members = &object.members_}); !done) {
    return std::unexpected(done.error());
  }
  return object;
}

Result<std::vector<std::string_view>> scan_json_array(std::string_view text,
                                                      const JsonLimits& limits) {
  std::vector<std::string_view> elements;
  if (auto done = Scanner(text, limits).run('[', {.elements = &elements}); !done) {
    return std::unexpected(done.error());
  }
  return elements;
}

std::string json_unquote(std::string_view raw) {
  if (!is_json_string(raw)) return {};
  return unescape(raw.substr(1, raw.size() - 2));
}

std::string json_quote(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  append_quoted(out, text);
  return out;
}

bool is_utf8(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size();) {
    const std::size_t length = utf8_length(bytes, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = std::min<std::size_t>(3, bytes.size() - i);
    unsigned group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < left ? byte_at(bytes, i + k) : 0u);
    for (std::size_t k = 0; k < 4; ++k) {
      out += k <= left ? base64_digits[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return out;
}

// Strict: groups of four, padding only at the end, unused bits zero.
std::string base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) return {};
  std::string out;
  out.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    unsigned group = 0;
    std::size_t pads = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const char c = text[i + k];
      if (c == '=' && i + 4 == text.size() && k >= 2) {
        ++pads;
        group <<= 6;
        continue;
      }
      const char* digit = c == '\0' ? nullptr : std::strchr(base64_digits, c);
      if (digit == nullptr || pads != 0) return {};
      group = group << 6 | static_cast<unsigned>(digit - base64_digits);
    }
    if ((pads == 1 && (group & 0xff) != 0) || (pads == 2 && (group & 0xffff) != 0)) return {};
    for (std::size_t k = 0; k < 3 - pads; ++k)
      out += static_cast<char>(group >> (16 - 8 * k) & 255);
  }
  return out;
}

void JsonWriter::begin(std::string_view key) {
  if (out_.size() > 1) out_ += ',';
  append_quoted(out_, key);
  out_ += ':';
}

JsonWriter& JsonWriter::text(std::string_view key, std::string_view value) {
  begin(key);
  append_quoted(out_, value);
  return *this;
}

JsonWriter& JsonWriter::number(std::string_view key, std::int64_t value) {
  return raw(key, std::to_string(value));
}

JsonWriter& JsonWriter::count(std::string_view key, std::uint64_t value) {
  return raw(key, std::to_string(value));
}

JsonWriter& JsonWriter::boolean(std::string_view key, bool value) {
  return raw(key, value ? "true" : "false");
}

JsonWriter& JsonWriter::null(std::string_view key) {
  return raw(key, "null");
}

JsonWriter& JsonWriter::raw(std::string_view key, std::string_view json) {
  begin(key);
  out_ += json;
  return *this;
}

JsonWriter& JsonWriter::path(std::string_view key, std::string_view bytes) {
  if (is_utf8(bytes)) return text(key, bytes);
  return text(std::string(key) + "_b64", base64(bytes));
}

JsonWriter& JsonWriter::texts(std::string_view key, const std::vector<std::string>& values) {
  begin(key);
  out_ += '[';
  for (const std::string& value : values) {
    if (&value != &values.front()) out_ += ',';
    append_quoted(out_, value);
  }
  out_ += ']';
  return *this;
}

std::string JsonWriter::finish() {
  out_ += '}';
  return std::exchange(out_, "{");
}

} // namespace nd7
