#include "core/glob.h"

#include <cctype>

#include <fmt/format.h>

namespace nd7 {

namespace {

constexpr std::size_t pattern_size_bytes_max = 4096;
constexpr std::size_t starts_max = 8;

unsigned char byte_of(char c) {
  return static_cast<unsigned char>(c);
}

bool is_special(char c) {
  return c == '*' || c == '?' || c == '[' || c == '\\';
}

// gitignore(5): trailing spaces do not count unless escaped.
std::string_view without_trailing_spaces(std::string_view pattern) {
  std::size_t keep = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) {
      keep = i + 2;
      ++i;
    } else if (pattern[i] != ' ') {
      keep = i + 1;
    }
  }
  return pattern.substr(0, keep);
}

// The classes of POSIX in the C locale, whatever the program's locale is.
bool in_class(std::string_view name, unsigned char c, bool& known) {
  known = true;
  bool upper = c >= 'A' && c <= 'Z', lower = c >= 'a' && c <= 'z', digit = c >= '0' && c <= '9';
  if (name == "alnum") return upper || lower || digit;
  if (name == "alpha") return upper || lower;
  if (name == "blank") return c == ' ' || c == '\t';
  if (name == "cntrl") return c < 32 || c == 127;
  if (name == "digit") return digit;
  if (name == "graph") return c > 32 && c < 127;
  if (name == "lower") return lower;
  if (name == "print") return c >= 32 && c < 127;
  if (name == "punct") return c > 32 && c < 127 && !(upper || lower || digit);
  if (name == "space") return c == ' ' || (c >= 9 && c <= 13);
  if (name == "upper") return upper;
  if (name == "xdigit") return digit || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  known = false;
  return false;
}

} // namespace

Result<Glob> Glob::parse(std::string_view pattern) {
  Glob glob;
  glob.text_ = std::string(pattern);
  if (pattern.size() > pattern_size_bytes_max)
    return fail(fmt::format("pattern longer than {} bytes", pattern_size_bytes_max));
  if (pattern.find('\0') != std::string_view::npos) return fail("pattern holds a NUL");
  if (pattern.starts_with('!'))
    return fail(fmt::format("pattern '{}': '!' is not supported", pattern),
                "write a rule of the other kind instead, or \\! for a name that begins so");
  pattern = without_trailing_spaces(pattern);
  if (pattern.ends_with('/')) {
    glob.directory_only_ = true;
    pattern.remove_suffix(1);
  }
  glob.anchored_ = pattern.find('/') != std::string_view::npos;
  if (pattern.starts_with('/')) pattern.remove_prefix(1);
  // "**/name" says the same as "name", which is cheaper to match.
  const std::size_t last_slash = pattern.rfind('/');
  if (last_slash != std::string_view::npos && last_slash + 1 < pattern.size()) {
    std::string_view leading = pattern.substr(0, last_slash + 1);
    while (leading.starts_with("**/")) leading.remove_prefix(3);
    if (leading.empty()) {
      pattern.remove_prefix(last_slash + 1);
      glob.anchored_ = false;
    }
  }
  if (pattern.empty()) return fail(fmt::format("pattern '{}' matches nothing", glob.text_));
  if (Result<> compiled = glob.compile(pattern); !compiled)
    return std::unexpected(compiled.error());
  return glob;
}

Result<> Glob::compile(std::string_view pattern) {
  std::size_t literal_end = 0;
  while (literal_end < pattern.size() && !is_special(pattern[literal_end])) ++literal_end;
  components_ = 1;
  for (std::size_t i = 0; i < pattern.size();) {
    char c = pattern[i];
    if (c == '\\') {
      if (i + 1 == pattern.size())
        return fail(fmt::format("pattern '{}' ends in a lone backslash", text_));
      if (pattern[i + 1] == '/') ++components_;
      tokens_.push_back({Kind::literal, pattern[i + 1], 0});
      i += 2;
    } else if (c == '?') {
      tokens_.push_back({Kind::one, 0, 0});
      ++i;
    } else if (c == '[') {
      Result<std::size_t> end = compile_set(pattern, i);
      if (!end) return std::unexpected(end.error());
      i = *end;
    } else if (c == '*') {
      std::size_t end = i;
      while (end < pattern.size() && pattern[end] == '*') ++end;
      bool opens = i == literal_end || pattern[i - 1] == '/';
      bool slash_follows = end < pattern.size() && pattern[end] == '/';
      bool escaped_slash_follows = pattern.substr(end).starts_with("\\/");
      bool closes = end == pattern.size() || slash_follows || escaped_slash_follows;
      if (end - i >= 2 && anchored_ && opens && closes) {
        crosses_slashes_ = true;
        if (slash_follows) {
          tokens_.push_back({Kind::gap, 0, 0});
          tokens_.push_back({Kind::run_slash, 0, 0});
          ++end;
        } else {
          tokens_.push_back({Kind::run, 0, 0});
        }
      } else {
        tokens_.push_back({Kind::star, 0, 0});
      }
      i = end;
    } else {
      if (c == '/') ++components_;
      tokens_.push_back({Kind::literal, c, 0});
      ++i;
    }
  }
  return {};
}

// A bracket expression that starts at `at`; gives the position behind it.
Result<std::size_t> Glob::compile_set(std::string_view pattern, std::size_t at) {
  auto unclosed = [&] { return fail(fmt::format("pattern '{}': '[' is not closed", text_)); };
  std::bitset<256> set;
  std::size_t i = at + 1;
  bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (negated) ++i;
  // Reads one end of a range; a backslash takes the next byte literally.
  auto one = [&](unsigned char& c) {
    if (i < pattern.size() && pattern[i] == '\\') ++i;
    if (i >= pattern.size()) return false;
    c = byte_of(pattern[i++]);
    return true;
  };
  for (bool first = true;; first = false) {
    if (i >= pattern.size()) return unclosed();
    if (pattern[i] == ']' && !first) break;
    if (pattern.substr(i).starts_with("[:")) {
      std::size_t end = pattern.find(']', i + 2);
      if (end == std::string_view::npos) return unclosed();
      if (end >= i + 3 && pattern[end - 1] == ':') {
        std::string_view name = pattern.substr(i + 2, end - 1 - (i + 2));
        bool known = false;
        for (unsigned c = 0; c < 256; ++c)
          if (in_class(name, static_cast<unsigned char>(c), known)) set.set(c);
        if (!known) return fail(fmt::format("pattern '{}': no class [:{}:]", text_, name));
        i = end + 1;
        continue;
      }
    }
    unsigned char low = 0;
    if (!one(low)) return unclosed();
    unsigned char high = low;
    if (i + 1 < pattern.size() && pattern[i] == '-' && pattern[i + 1] != ']') {
      ++i;
      if (!one(high)) return unclosed();
    }
    for (unsigned c = low; c <= high; ++c) set.set(c);
    if (high < low) set.set(low); // git takes the low end of an empty range
  }
  if (negated) set.flip();
  set.reset(byte_of('/'));
  tokens_.push_back({Kind::set, 0, sets_.size()});
  sets_.push_back(set);
  return i + 1;
}

bool Glob::token_takes(const Token& token, char byte) const {
  switch (token.kind) {
  case Kind::literal:
    return byte == token.byte;
  case Kind::one:
    return byte != '/';
  case Kind::set:
    return sets_[token.set].test(byte_of(byte));
  default:
    return false;
  }
}

// Without tokens that cross slashes it is enough to move the last star on: an earlier one can gain
// nothing that the last cannot.
bool Glob::whole(std::string_view text) const {
  std::size_t t = 0, p = 0;
  std::size_t star_p = tokens_.size(), star_t = 0;
  while (t < text.size()) {
    if (p < tokens_.size() && tokens_[p].kind == Kind::star) {
      star_p = p++;
      star_t = t;
    } else if (p < tokens_.size() && token_takes(tokens_[p], text[t])) {
      ++p;
      ++t;
    } else if (star_p < tokens_.size() && text[star_t] != '/') {
      p = star_p + 1;
      t = ++star_t;
    } else {
      return false;
    }
  }
  while (p < tokens_.size() && tokens_[p].kind == Kind::star) ++p;
  return p == tokens_.size();
}

// Steps that take no byte, always forward.
void Glob::close(std::vector<bool>& states) const {
  for (std::size_t p = 0; p < tokens_.size(); ++p) {
    if (!states[p]) continue;
    const Kind kind = tokens_[p].kind;
    if (kind == Kind::star || kind == Kind::run) states[p + 1] = true;
    if (kind == Kind::gap) states[p + 1] = states[p + 2] = true;
  }
}

// One byte on, as a set of positions in the pattern: no backtracking. False when none is left.
bool Glob::step(const std::vector<bool>& now, std::vector<bool>& next, char byte) const {
  next.assign(now.size(), false);
  bool alive = false;
  for (std::size_t p = 0; p < tokens_.size(); ++p) {
    if (!now[p]) continue;
    const Token& token = tokens_[p];
    const bool stays = (token.kind == Kind::star && byte != '/') || token.kind == Kind::run ||
                       token.kind == Kind::run_slash;
    const bool steps = token_takes(token, byte) || (token.kind == Kind::run_slash && byte == '/');
    if (stays) next[p] = true;
    if (steps) next[p + 1] = true;
    alive = alive || stays || steps;
  }
  if (alive) close(next);
  return alive;
}

// The positions that `text` can lead to.
std::vector<bool> Glob::states_after(std::string_view text) const {
  std::vector<bool> now(tokens_.size() + 1), next;
  now[0] = true;
  close(now);
  for (const char byte : text) {
    const bool alive = step(now, next, byte);
    now.swap(next);
    if (!alive) break;
  }
  return now;
}

// The path or one of its parents, in one pass.
bool Glob::crossing(std::string_view text, bool is_directory) const {
  std::vector<bool> now(tokens_.size() + 1), next;
  now[0] = true;
  close(now);
  for (const char byte : text) {
    if (byte == '/' && now.back()) return true;
    if (!step(now, next, byte)) return false;
    now.swap(next);
  }
  return now.back() && (!directory_only_ || is_directory);
}

bool Glob::matches(std::string_view relative, bool is_directory) const {
  if (relative.empty()) return false;
  if (crosses_slashes_) return crossing(relative, is_directory);
  std::size_t begin = 0, depth = 0;
  while (begin < relative.size()) {
    std::size_t end = relative.find('/', begin);
    const bool last = end == std::string_view::npos;
    if (last) end = relative.size();
    ++depth;
    if (!directory_only_ || !last || is_directory) {
      if (!anchored_ && whole(relative.substr(begin, end - begin))) return true;
      if (anchored_ && depth == components_ && whole(relative.substr(0, end))) return true;
    }
    if (anchored_ && depth >= components_) return false;
    begin = end + 1;
  }
  return false;
}

std::vector<std::string> Glob::literal_starts() const {
  std::vector<std::string> out{""};
  if (!anchored_) return out;
  for (const Token& token : tokens_) {
    if (token.kind == Kind::literal) {
      for (std::string& start : out) start += token.byte;
      continue;
    }
    // A small set: one start for each of its bytes.
    if (token.kind != Kind::set || out.size() * sets_[token.set].count() > starts_max) break;
    std::vector<std::string> more;
    for (const std::string& start : out)
      for (std::size_t c = 0; c < 256; ++c)
        if (sets_[token.set].test(c)) more.push_back(start + static_cast<char>(c));
    out = std::move(more);
  }
  return out;
}

bool Glob::reaches_below(std::string_view directory) const {
  if (!anchored_ || directory.empty() || matches(directory, true)) return true;
  std::vector<bool> states = states_after(std::string(directory) + "/");
  for (std::size_t p = 0; p < tokens_.size(); ++p)
    if (states[p]) return true;
  return false;
}

} // namespace nd7
