#include "core/git_config.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "core/git_config_rules.h"

namespace nd7 {
namespace {

// Git's own character classes (ctype.c), whatever the locale.
bool is_space(int c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
bool is_letter(int c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_key_char(int c) {
  return is_letter(c) || (c >= '0' && c <= '9') || c == '-';
}
char lower(int c) {
  return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

class Parser {
public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::vector<GitConfigEntry>> run() {
    constexpr std::string_view bom = "\xEF\xBB\xBF";
    if (text_.starts_with(bom))
      at_ = bom.size();
    else if (text_.starts_with(bom.front()))
      return error(); // a partial mark: git refuses it too
    for (bool comment = false;;) {
      const int c = next();
      begin_ = line_;
      if (c == '\n') {
        if (eof_) return std::move(entries_);
        comment = false;
      } else if (comment || is_space(c)) {
        continue;
      } else if (c == '#' || c == ';') {
        comment = true;
      } else if (c == '[') {
        if (!section()) return error();
      } else if (!is_letter(c) || !entry(c)) {
        return error();
      }
    }
  }

private:
  // The next character as git sees it: CR LF is LF, and the end of the file is one LF after
  // another.
  int next() {
    if (at_ >= text_.size()) {
      eof_ = true;
      return '\n';
    }
    const char c = text_[at_++];
    if (c == '\n') ++line_;
    if (c == '\r' && at_ < text_.size() && text_[at_] == '\n') {
      ++at_;
      ++line_;
      return '\n';
    }
    return static_cast<unsigned char>(c);
  }

  // After '['. Leaves "core." or "remote.origin." as the beginning of the names that follow.
  bool section() {
    base_.clear();
    shown_base_.clear();
    for (;;) {
      const int c = next();
      if (eof_) return false;
      if (c == ']') break;
      if (is_space(c)) {
        if (!subsection(c)) return false;
        break;
      }
      if (!is_key_char(c) && c != '.') return false;
      base_ += lower(c);
      shown_base_ += static_cast<char>(c);
    }
    if (base_.empty()) return false;
    base_ += '.';
    shown_base_ += '.';
    return true;
  }

  bool subsection(int c) {
    do {
      if (c == '\n') return false;
      c = next();
    } while (is_space(c));
    if (c != '"') return false;
    std::string name = ".";
    for (;;) {
      c = next();
      if (c == '\n') return false;
      if (c == '"') break;
      if (c == '\\') {
        c = next();
        if (c == '\n') return false;
      }
      name += static_cast<char>(c);
    }
    base_ += name;
    shown_base_ += name;
    return next() == ']';
  }

  bool entry(int c) {
    GitConfigEntry out;
    out.key = base_ + lower(c);
    out.shown = shown_base_ + static_cast<char>(c);
    for (;;) {
      c = next();
      if (eof_ || !is_key_char(c)) break;
      out.key += lower(c);
      out.shown += static_cast<char>(c);
    }
    while (c == ' ' || c == '\t') c = next();
    if (c != '\n') {
      if (c != '=') return false;
      const std::size_t begin = at_;
      out.value.emplace();
      if (!value(*out.value)) return false;
      out.raw = text_.substr(begin, at_ - begin);
      while (!out.raw.empty() && is_space(out.raw.back())) out.raw.pop_back();
      out.raw.erase(0, std::min(out.raw.find_first_not_of(" \t"), out.raw.size()));
    }
    entries_.push_back(std::move(out));
    return true;
  }

  // Up to the end of the line. White space outside quotes is dropped at both ends, kept inside.
  bool value(std::string& out) {
    bool quote = false, comment = false;
    std::string space;
    for (;;) {
      int c = next();
      if (c == '\n') return !quote;
      if (comment) continue;
      if (is_space(c) && !quote) {
        if (!out.empty()) space += static_cast<char>(c);
        continue;
      }
      if (!quote && (c == ';' || c == '#')) {
        comment = true;
        continue;
      }
      out += space;
      space.clear();
      if (c == '"') {
        quote = !quote;
        continue;
      }
      if (c == '\\') {
        c = next();
        switch (c) {
        case '\n':
          continue;
        case 't':
          c = '\t';
          break;
        case 'b':
          c = '\b';
          break;
        case 'n':
          c = '\n';
          break;
        case '\\':
        case '"':
          break;
        default:
          return false;
        }
      }
      out += static_cast<char>(c);
    }
  }

  std::unexpected<Error> error() const {
    return fail(fmt::format("line {}: not git's syntax", begin_));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t begin_ = 1; // the line where what is being read began
  bool eof_ = false;
  std::string base_, shown_base_;
  std::vector<GitConfigEntry> entries_;
};

} // namespace

GitConfigKey split_git_config_key(std::string_view key) {
  const std::size_t first = key.find('.');
  if (first == std::string_view::npos) return {{}, {}, key};
  const std::size_t last = key.rfind('.');
  GitConfigKey out{key.substr(0, first), {}, key.substr(last + 1)};
  if (last > first) out.subsection = key.substr(first + 1, last - first - 1);
  return out;
}

Result<std::vector<GitConfigEntry>> parse_git_config(std::string_view text) {
  if (text.size() > git_config_bytes_max) return fail("too long");
  if (text.find('\0') != std::string_view::npos) return fail("a NUL byte");
  return Parser(text).run();
}

namespace {

Judgement refuse(std::string_view what) {
  return {false, fmt::format("git config {}", what)};
}

// A carriage return alone, or another control character: readers of this format disagree on them
// (CVE-2025-48384), and no tool writes them unescaped. The ones that a user has may stay.
bool has_odd_bytes(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '\r' && (i + 1 == text.size() || text[i + 1] != '\n')) return true;
    if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7F) return true;
  }
  return false;
}

bool same(const GitConfigEntry& a, const GitConfigEntry& b) {
  return a.key == b.key && a.value == b.value && a.raw == b.raw;
}

using Entries = std::vector<GitConfigEntry>;
Entries those_of(const Entries& all, const std::function<bool(const GitConfigEntry&)>& wanted) {
  Entries out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out), wanted);
  return out;
}

} // namespace

Judgement judge_git_config(std::string_view old_text, std::string_view new_text,
                           std::string_view path) {
  const Result<Entries> before = parse_git_config(old_text);
  if (!before) return refuse("cannot be judged: the present file has " + before.error().text);
  const Result<Entries> after = parse_git_config(new_text);
  if (!after) return refuse("cannot be judged: " + after.error().text);
  if (has_odd_bytes(new_text) && !has_odd_bytes(old_text))
    return refuse("cannot be judged: it would hold control characters");

  // `held`: what must stay equal. A harmless entry is no part of this, wherever it moves.
  const auto keys_of = [](const Entries& entries) {
    std::set<std::string, std::less<>> keys;
    for (const GitConfigEntry& entry : entries) keys.insert(entry.key);
    return keys;
  };
  const auto is_held = [path](const GitConfigEntry& entry) {
    return is_git_protection(entry) || git_key_objection(entry, path).has_value();
  };
  const Entries held_before = those_of(*before, is_held);

  // 1. Every refused entry is one of the old ones.
  for (const GitConfigEntry& entry : *after) {
    const auto objection = git_key_objection(entry, path);
    if (!objection) continue;
    const bool stood = std::any_of(held_before.begin(), held_before.end(),
                                   [&](const GitConfigEntry& old) { return same(old, entry); });
    if (!stood) return refuse(fmt::format("{} {}", printable_key(entry.shown), *objection));
  }
  // 2. Nothing that protects is gone, changed or overruled by a later value.
  for (const GitConfigEntry& entry : *before) {
    if (!is_git_protection(entry)) continue;
    const auto of_key = [&](const GitConfigEntry& other) { return other.key == entry.key; };
    const Entries was = those_of(*before, of_key), is = those_of(*after, of_key);
    if (!std::equal(was.begin(), was.end(), is.begin(), is.end(), same))
      return refuse(
          fmt::format("{} is a protection and must stay as it is", printable_key(entry.shown)));
  }
  // 3. What is left of the others keeps its order and number: the last value of a key wins, and an
  // included file is read where its line stands.
  const Entries held_after = those_of(*after, is_held);
  const std::set<std::string, std::less<>> left = keys_of(held_after);
  const Entries expected =
      those_of(held_before, [&](const GitConfigEntry& entry) { return left.contains(entry.key); });
  const auto [was, is] =
      std::mismatch(expected.begin(), expected.end(), held_after.begin(), held_after.end(), same);
  if (is != held_after.end())
    return refuse(fmt::format("{} would get another value or place", printable_key(is->shown)));
  if (was != expected.end())
    return refuse(fmt::format("{} would get another value or place", printable_key(was->shown)));
  return {true, {}};
}

} // namespace nd7
