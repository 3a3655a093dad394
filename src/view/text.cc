#include "view/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/clock.h"
#include "view/paint.h"

namespace nd7 {
namespace {

constexpr std::size_t word_columns = 8;
constexpr std::size_t text_columns_min = 20;
constexpr std::size_t verbose_columns = 1 << 20;

struct Look {
  char mark;
  Tint tint;
};

Look look_of(const Row& row) {
  if (row.kind == "refused") return {'!', Tint::red};
  if (row.kind == "gap") return {'#', Tint::yellow};
  switch (row.voice) {
  case Voice::intent:
    return {'>', Tint::cyan};
  case Voice::effect:
    return {'*', Tint::plain};
  case Voice::nd7:
    return {'#', Tint::blue};
  case Voice::other:
    return {'?', Tint::yellow};
  }
  return {'?', Tint::yellow};
}

// Lines of at most `width` columns, broken at spaces where there are any.
std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (columns(text) > width) {
    std::string piece = shorten(text, width);
    piece.resize(piece.size() - std::string_view("…").size());
    std::size_t stop = piece.rfind(' ');
    if (stop == std::string::npos || stop < width / 2) stop = piece.size();
    if (stop == 0) break;
    lines.emplace_back(text.substr(0, stop));
    text.remove_prefix(stop);
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
  lines.emplace_back(text);
  return lines;
}

std::string fold_text(const Row& row) {
  std::string text;
  for (const auto& [kind, count] : row.folded) {
    text += (text.empty() ? "" : ", ") + counted(count, kind);
  }
  return text;
}

} // namespace

std::string row_text(const Row& row, const TextOptions& options, unsigned depth) {
  const std::string margin(9 + 2 * depth, ' ');
  const std::size_t used = margin.size() + 2 + word_columns + 1;
  const std::size_t width =
      std::max(options.columns > used ? options.columns - used : 0, text_columns_min);
  if (row.kind.empty()) {
    const std::string line = margin + "  (" + visible(fold_text(row)) + ")";
    return tinted(Tint::dim, shorten(line, options.columns), options.color) + "\n";
  }
  const Look look = look_of(row);
  const KindRow* kind = find_kind(row.kind);
  const std::string word = kind != nullptr ? kind->word : shorten(visible(row.kind), word_columns);
  const std::string continued = margin + std::string(2 + word_columns + 1, ' ');
  std::string text = visible(row.text);
  if (row.times > 1) text += fmt::format(" ({} times)", row.times);

  const bool refused = row.kind == "refused";
  std::vector<std::string> lines;
  if (refused) {
    lines = wrapped(text, width);
  } else {
    lines.push_back(shorten(text, options.verbose ? verbose_columns : width));
  }
  std::string out = fmt::format(
      "{} {}{} {}{} {}\n", tinted(Tint::dim, local_time(row.ts), options.color),
      std::string(2 * depth, ' '), tinted(look.tint, std::string(1, look.mark), options.color),
      tinted(look.tint, word, options.color),
      std::string(word_columns - std::min(word_columns, columns(word)), ' '),
      refused ? tinted(Tint::bold, lines.front(), options.color) : lines.front());
  for (std::size_t i = 1; i < lines.size(); ++i) out += continued + lines[i] + "\n";

  const auto more = [&](std::string_view prefix, std::string_view said, Tint tint) {
    for (const std::string& line : wrapped(std::string(prefix) + visible(said), width)) {
      out += continued + tinted(tint, line, options.color) + "\n";
    }
  };
  if (refused) {
    more("by rule: ", row.rule, Tint::plain);
    if (row.open_with.empty()) {
      more("no grant opens this", "", Tint::plain);
    } else {
      // Not wrapped: it is there to be copied.
      const std::string command = "allow it: " + visible(row.open_with);
      out += continued + tinted(Tint::green, command, options.color) + "\n";
    }
  }
  for (const std::string& note : row.notes) more("", note, Tint::yellow);
  if (options.verbose) {
    more(fmt::format("entry {}", row.seq), row.call.empty() ? "" : ", call " + row.call, Tint::dim);
    for (const std::string& detail : row.details) more("", detail, Tint::dim);
  }
  for (const Row& below : row.below) out += row_text(below, options, depth + 1);
  return out;
}

std::string timeline_text(const Timeline& timeline, const TextOptions& options) {
  std::string out;
  std::string day;
  for (const Row& row : timeline.rows()) {
    const std::string date = local_date_time(row.ts).substr(0, 10);
    if (date != day) out += tinted(Tint::dim, "-- " + date, options.color) + "\n";
    day = date;
    out += row_text(row, options);
  }
  return out;
}

std::string legend_text(const TextOptions& options) {
  return fmt::format("{} the agent said   {} the kernel saw   {} nd7 refused   {} nd7\n",
                     tinted(Tint::cyan, ">", options.color), "*",
                     tinted(Tint::red, "!", options.color), tinted(Tint::blue, "#", options.color));
}

} // namespace nd7
