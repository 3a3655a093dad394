#include "cli/options.h"

#include <fmt/format.h>
#include <getopt.h>

#include <algorithm>

#include "base/bytes.h"
#include "cli/ui.h"

namespace nd7 {
namespace {

constexpr std::size_t help_column = 24;
constexpr int first_code = 0x100; // above every short option

// Optimal string alignment distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

std::string option_words(const Option& option) {
  std::string words = option.letter != 0 ? fmt::format("-{}, --{}", option.letter, option.name)
                                         : fmt::format("    --{}", option.name);
  if (option.value != nullptr) words += fmt::format(" {}", option.value);
  return words;
}

std::string indented(std::string_view text, std::string_view margin) {
  std::string out;
  while (!text.empty()) {
    const std::size_t stop = std::min(text.find('\n'), text.size());
    out += stop == 0 ? "\n" : fmt::format("{}{}\n", margin, text.substr(0, stop));
    text.remove_prefix(std::min(stop + 1, text.size()));
  }
  return out;
}

// What was typed and is not known, with the option that was likely meant.
std::string unknown_option(const Usage& usage, const char* typed, int code) {
  const std::string word = typed != nullptr ? typed : "";
  if (!word.starts_with("--")) {
    const bool short_one = code > 0 && code < first_code;
    const std::string letter = short_one ? std::string(1, static_cast<char>(code)) : word;
    return fmt::format("unknown option '{}{}'", short_one ? "-" : "", visible(letter));
  }
  const std::string name = word.substr(2, word.find('=') - 2);
  std::vector<std::string> names{"help"};
  std::size_t prefixes = 0;
  for (const Option& option : usage.options) {
    names.emplace_back(option.name);
    if (names.back() == name && option.value == nullptr) {
      return fmt::format("option '--{}' takes no value", name);
    }
    if (names.back().starts_with(name)) ++prefixes;
  }
  std::string text =
      fmt::format("{} option '--{}'", prefixes > 1 ? "ambiguous" : "unknown", visible(name));
  if (auto meant = closest(name, names); meant && prefixes <= 1) {
    text += fmt::format(" (did you mean --{}?)", *meant);
  }
  return text;
}

// man(7): a leading dot or quote would be a request, a backslash an escape, '-' a hyphen.
std::string roff(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool at_start = i == 0 || text[i - 1] == '\n';
    if (at_start && (text[i] == '.' || text[i] == '\'')) out += "\\&";
    if (text[i] == '\\') {
      out += "\\e";
    } else if (text[i] == '-') {
      out += "\\-";
    } else {
      out += text[i];
    }
  }
  return out;
}

} // namespace

bool Arguments::has(std::string_view option) const {
  return std::any_of(given_.begin(), given_.end(),
                     [&](const Given& given) { return given.name == option; });
}

std::string Arguments::value(std::string_view option, std::string_view otherwise) const {
  const auto last = std::find_if(given_.rbegin(), given_.rend(),
                                 [&](const Given& given) { return given.name == option; });
  return last != given_.rend() ? last->value : std::string(otherwise);
}

std::vector<std::string> Arguments::values(std::string_view option) const {
  std::vector<std::string> all;
  for (const Given& given : given_) {
    if (given.name == option) all.push_back(given.value);
  }
  return all;
}

std::expected<Arguments, int> parse_options(const Usage& usage, int argc, char** argv) {
  // '+': stop at the first argument. '-': hand arguments over as code 1, in place, so options may
  // follow them whatever POSIXLY_CORRECT says. ':': a missing value is told apart.
  std::string letters = usage.stop_at_first ? "+:h" : "-:h";
  std::vector<option> table;
  for (std::size_t i = 0; i < usage.options.size(); ++i) {
    const Option& row = usage.options[i];
    const int takes = row.value != nullptr ? required_argument : no_argument;
    table.push_back({row.name, takes, nullptr, first_code + static_cast<int>(i)});
    if (row.letter != 0) {
      letters += row.letter;
      if (row.value != nullptr) letters += ':';
    }
  }
  table.push_back({"help", no_argument, nullptr, 'h'});
  table.push_back({nullptr, 0, nullptr, 0});

  Arguments arguments;
  optind = 0; // glibc: start over, also with another table
  opterr = 0;
  for (;;) {
    const int next = std::max(optind, 1);
    const int code = ::getopt_long(argc, argv, letters.c_str(), table.data(), nullptr);
    if (code == -1) break;
    const char* typed = next < argc ? argv[next] : nullptr;
    if (code == 1) {
      arguments.rest_.emplace_back(optarg);
      continue;
    }
    if (code == 'h') {
      print(help_text(usage));
      return std::unexpected(0);
    }
    if (code == '?')
      return std::unexpected(usage_error(usage, unknown_option(usage, typed, optopt)));
    const auto row = std::find_if(usage.options.begin(), usage.options.end(), [&](const Option& o) {
      const int wanted = code == ':' ? optopt : code;
      const auto index = static_cast<int>(&o - usage.options.data());
      return wanted == first_code + index || (o.letter != 0 && wanted == o.letter);
    });
    if (row == usage.options.end()) return std::unexpected(usage_error(usage, "unknown option"));
    if (code == ':') {
      return std::unexpected(usage_error(
          usage, fmt::format("option '--{}' needs a value ({})", row->name, row->value)));
    }
    arguments.given_.push_back({row->name, row->value != nullptr ? optarg : ""});
  }
  for (int i = optind; i < argc; ++i) arguments.rest_.emplace_back(argv[i]);
  return arguments;
}

int usage_error(const Usage& usage, std::string_view text) {
  talk(fmt::format("nd7 {0}: {1}, try nd7 {0} --help", usage.name, text));
  return 2;
}

std::string help_text(const Usage& usage) {
  std::string out = fmt::format("nd7 {}: {}\n\nusage: nd7 {}{}{}{}\n", usage.name, usage.summary,
                                usage.name, usage.options.empty() ? "" : " [options]",
                                *usage.arguments != '\0' ? " " : "", usage.arguments);
  if (*usage.details != '\0') out += fmt::format("\n{}\n", usage.details);
  out += "\noptions:\n";
  for (const Option& option : usage.options) {
    const std::string words = option_words(option);
    if (words.size() + 2 > help_column) {
      out += fmt::format("  {}\n{:{}}{}\n", words, "", help_column + 2, option.help);
    } else {
      out += fmt::format("  {:{}}{}\n", words, help_column, option.help);
    }
  }
  out += fmt::format("  {:{}}{}\n", "-h, --help", help_column, "show this help");
  if (*usage.example != '\0') out += fmt::format("\nexample:\n{}", indented(usage.example, "  "));
  return out;
}

std::string manual_text(const Usage& usage) {
  std::string out = fmt::format(
      ".SS nd7 {}{}{}{}\n{}.\n", roff(usage.name), usage.options.empty() ? "" : " [options]",
      *usage.arguments != '\0' ? " " : "", roff(usage.arguments), roff(usage.summary));
  if (*usage.details != '\0') out += fmt::format(".PP\n{}\n", roff(usage.details));
  for (const Option& option : usage.options) {
    out += ".TP\n.B ";
    if (option.letter != 0) out += fmt::format("\\-{}, ", option.letter);
    out += fmt::format("\\-\\-{}", roff(option.name));
    if (option.value != nullptr) out += fmt::format(" {}", option.value);
    out += fmt::format("\n{}\n", roff(option.help));
  }
  if (*usage.example != '\0')
    out += fmt::format(".PP\n.EX\n{}.EE\n", indented(roff(usage.example), ""));
  return out;
}

std::optional<std::string> closest(std::string_view word, const std::vector<std::string>& names) {
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& name : names) {
    if (const std::size_t d = distance(word, name); d < best_distance) {
      best_distance = d;
      best = name;
    }
  }
  return best;
}

} // namespace nd7
