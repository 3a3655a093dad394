#include "base/bytes.h"

#include <algorithm>
#include <cstdint>

namespace nd7 {
namespace {

constexpr char digits[] = "0123456789abcdef";

struct Range {
  std::uint32_t first, last;
};

// Characters that are invisible, reorder text or end a line (Unicode 15: categories Cc and Cf, the
// line and paragraph separators, fillers; variation selectors are left alone, emoji need them).
constexpr Range hidden[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},     {0x34f, 0x34f},     {0x600, 0x605},
    {0x61c, 0x61c},   {0x6dd, 0x6dd},   {0x70f, 0x70f},   {0x115f, 0x1160},   {0x17b4, 0x17b5},
    {0x180b, 0x180f}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},   {0x3164, 0x3164},
    {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

// Two columns wide on terminals (East Asian Width W and F, coarse).
constexpr Range wide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x23e9, 0x23ec},   {0x2e80, 0x303e},
    {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xa000, 0xa4cf},
    {0xa960, 0xa97f},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
    {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff},
    {0x1f900, 0x1faff}, {0x20000, 0x3fffd},
};

// No column of their own.
constexpr Range combining[] = {
    {0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x610, 0x61a},   {0x64b, 0x65f},
    {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
};

template <std::size_t N> bool in(const Range (&table)[N], std::uint32_t code) {
  const auto* after =
      std::upper_bound(std::begin(table), std::end(table), code,
                       [](std::uint32_t c, const Range& range) { return c < range.first; });
  return after != std::begin(table) && code <= (after - 1)->last;
}

// The character at `at` and its length in bytes; length 0 when it is not UTF-8.
struct Decoded {
  std::uint32_t code;
  std::size_t length;
};
Decoded decode(std::string_view s, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < s.size() ? static_cast<unsigned char>(s[at + i]) : 0u;
  };
  const std::uint32_t a = byte(0);
  if (a < 0x80) return {a, 1};
  const std::size_t length = a >= 0xf0 && a <= 0xf4 ? 4 : a >= 0xe0 ? 3 : a >= 0xc2 ? 2 : 0;
  if (length == 0 || a > 0xf4) return {a, 0};
  std::uint32_t code = a & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {a, 0};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr std::uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  if (code < smallest[length] || surrogate || code > 0x10ffff) return {a, 0};
  return {code, length};
}

void append_hex(std::string& out, std::uint32_t value, unsigned width) {
  for (unsigned shift = width * 4; shift > 0; shift -= 4) out += digits[value >> (shift - 4) & 15];
}

std::size_t width_of(std::uint32_t code) {
  if (code < 0x300) return 1;
  if (in(combining, code)) return 0;
  return in(wide, code) ? 2 : 1;
}

} // namespace

std::string hex(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) append_hex(out, static_cast<unsigned char>(c), 2);
  return out;
}

bool is_hex(std::string_view text, std::size_t size) {
  return text.size() == size && text.find_first_not_of(digits) == std::string_view::npos;
}

std::optional<std::string> unhex(std::string_view text) {
  if (text.size() % 2 != 0 || !is_hex(text, text.size())) return std::nullopt;
  const auto value = [](char c) {
    return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
  };
  std::string out;
  out.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    out += static_cast<char>(value(text[i]) << 4 | value(text[i + 1]));
  }
  return out;
}

std::string visible(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (std::size_t i = 0; i < bytes.size();) {
    const Decoded c = decode(bytes, i);
    if (c.length == 0) {
      out += "\\x";
      append_hex(out, c.code, 2);
      ++i;
      continue;
    }
    if (!in(hidden, c.code)) {
      out.append(bytes.substr(i, c.length));
    } else if (c.code == '\n') {
      out += "\\n";
    } else if (c.code == '\t') {
      out += "\\t";
    } else if (c.code == '\r') {
      out += "\\r";
    } else if (c.code < 0x80) {
      out += "\\x";
      append_hex(out, c.code, 2);
    } else if (c.code < 0x10000) {
      out += "\\u";
      append_hex(out, c.code, 4);
    } else {
      out += "\\U";
      append_hex(out, c.code, 8);
    }
    i += c.length;
  }
  return out;
}

std::size_t columns(std::string_view text) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < text.size();) {
    const Decoded c = decode(text, i);
    total += c.length == 0 ? 1 : width_of(c.code);
    i += std::max<std::size_t>(c.length, 1);
  }
  return total;
}

std::string shorten(std::string_view text, std::size_t width) {
  if (columns(text) <= width) return std::string(text);
  if (width == 0) return {};
  std::size_t used = 0;
  std::size_t i = 0;
  while (i < text.size()) {
    const Decoded c = decode(text, i);
    const std::size_t next = c.length == 0 ? 1 : width_of(c.code);
    if (used + next > width - 1) break;
    used += next;
    i += std::max<std::size_t>(c.length, 1);
  }
  return std::string(text.substr(0, i)) + "…";
}

} // namespace nd7
