// The timeline for a terminal.
//
//   12:00:05 > prompt    run the tests and tell me what breaks
//   12:00:07 > call      Bash: cargo test
//   12:00:07   * exec    cargo test
//   12:00:08   ! REFUSED write ~/.bashrc
//                        files: ~/.bashrc is outside the project
//                        allow it: nd7 allow ~/.bashrc
//
// The mark tells who speaks: > the agent said it, * the kernel saw it, ! nd7 refused it, # nd7
// about itself. Everything logged passes visible(); refusals are wrapped, never cut.
#pragma once

#include <string>

#include "core/timeline.h"

namespace nd7 {

struct TextOptions {
  std::size_t columns = 80;
  bool color = false;
  bool verbose = false; // whole texts and details
};

// One row and the rows below it; ends with a newline. `depth` 1 is below a call.
std::string row_text(const Row& row, const TextOptions& options, unsigned depth = 0);
std::string timeline_text(const Timeline& timeline, const TextOptions& options);
std::string legend_text(const TextOptions& options);

} // namespace nd7
