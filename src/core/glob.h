// gitignore's pattern language (gitignore(5)): *, ?, [..], **, a leading or inner slash anchors, a
// trailing slash matches directories only (and so everything below one), ! is refused here.
//
// Matches what `git check-ignore` matches, its undocumented corners too (a "**" directly after
// literal text, "a**/b", counts as one that crosses slashes). Two differences, because a pattern
// here is a value and not a line of a file: a leading # is an ordinary character, and what git
// would silently never match is an error. Case counts. Matching takes time in the order of pattern
// length times path length at worst, whatever the pattern.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace nd7 {

class Glob {
public:
  // Errors: empty pattern, unclosed bracket or class, lone backslash at the end, '!', a NUL, more
  // than 4096 bytes.
  static Result<Glob> parse(std::string_view pattern);
  // `relative`: path below the pattern's base directory, without a leading slash. Matches when the
  // path itself or one of its parents matches.
  bool matches(std::string_view relative, bool is_directory) const;
  // Whether anything strictly below the directory could match ("" is the base directory itself).
  // True more often than needed, never false wrongly.
  bool reaches_below(std::string_view directory) const;
  // Every path that matches begins with one of these; {""} when nothing is known. At most 8.
  std::vector<std::string> literal_starts() const;
  const std::string& text() const { return text_; }

private:
  enum class Kind : std::uint8_t {
    literal,   // one given byte
    one,       // ?: any byte but a slash
    set,       // [..]: a byte of the set, never a slash
    star,      // *: any run without a slash
    gap,       // the start of "**/": nothing, or a run_slash
    run_slash, // any run that ends in a slash
    run,       // "**" at the end: any run
  };
  struct Token {
    Kind kind = Kind::literal;
    char byte = 0;
    std::size_t set = 0; // index into sets_
  };

  Result<> compile(std::string_view pattern);
  Result<std::size_t> compile_set(std::string_view pattern, std::size_t at);
  bool token_takes(const Token& token, char byte) const;
  bool whole(std::string_view text) const;
  bool crossing(std::string_view text, bool is_directory) const;
  void close(std::vector<bool>& states) const;
  bool step(const std::vector<bool>& now, std::vector<bool>& next, char byte) const;
  std::vector<bool> states_after(std::string_view text) const;

  std::string text_;
  std::vector<Token> tokens_;
  std::vector<std::bitset<256>> sets_;
  bool anchored_ = false; // holds a slash other than the last: matches from the base on
  bool directory_only_ = false;
  bool crosses_slashes_ = false; // holds gap or run
  std::size_t components_ = 0;   // of what it matches, where that is fixed (not crosses_slashes_)
};

} // namespace nd7
