// gitignore's pattern language (gitignore(5)): *, ?, [..], **, a leading or inner slash anchors, a
// trailing slash matches directories only (and so everything below one), ! is refused here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace nd7 {

class Glob {
public:
  // Errors: empty pattern, unclosed bracket, lone backslash at the end, '!'.
  static Result<Glob> parse(std::string_view pattern);
  // `relative`: path below the pattern's base directory, without a leading slash. Matches when the
  // path itself or one of its parents matches.
  bool matches(std::string_view relative, bool is_directory) const;
  const std::string& text() const { return text_; }

private:
  struct Part { std::string text; bool any_depth = false; };
  std::string text_;
  std::vector<Part> parts_;
  bool anchored_ = false;
  bool directory_only_ = false;
};

}  // namespace nd7
