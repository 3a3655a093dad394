// The voice of nd7.
//
// - Results go to stdout, talk goes to stderr. A listing with --json is nothing but JSON on stdout.
// - Talk starts with "nd7: ", is lower case, has no full stop, and is one sentence a line.
// - An error says what was tried and why it failed; a second line gives the command that helps.
// - A refusal says who refused (nd7), what it really was, by which rule, and the command that would
//   allow it.
// - Colour only on a terminal, never with NO_COLOR set or TERM=dumb; it repeats what words say.
// - Whatever a log, a path or another program brings passes visible() (base/bytes.h) before it is
//   printed: control, direction and zero-width characters are shown as escapes, never sent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace nd7 {

// To stdout, as it is. finish_output() tells whether all of it arrived.
void print(std::string_view text);
// Flushes stdout; a failure (full disk, but not a closed pipe) is said and turns 0 into 2.
int finish_output(int status);
// Flushes stdout; true when nobody reads it any more, or it cannot be written.
bool output_gone();

// One line on stderr as it is (for "nd7 run: ..."), and with the prefix.
void talk(std::string_view line);
void say(std::string_view sentence);
// The error and its hint; returns 2, the status of "cannot".
int say_error(const Error& error);

bool is_terminal(int fd);
bool use_color(int fd);
std::size_t terminal_columns(int fd); // 80 when it is no terminal or does not say

// Asks on the terminal: "nd7: QUESTION [y/N] ". False without a terminal.
bool confirm(std::string_view question);

// A line on stderr that rewrites itself, for work that takes more than a second at a terminal.
class Progress {
public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void update(std::uint64_t done, std::uint64_t total);

private:
  std::string what_;
  std::uint64_t started_ns_;
  std::uint64_t shown_ns_ = 0;
  bool enabled_;
};

} // namespace nd7
