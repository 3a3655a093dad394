// One table a command: its options with their help. The table gives --help, the errors, the shell
// completions and the manual pages; parsing is getopt_long's.
//
//   constexpr Option options[] = {
//       {"json", 0, nullptr, "print JSON"},
//       {"only", 'o', "KIND", "only entries of this kind; may be repeated"},
//   };
//   const Usage usage_show{.name = "show", .summary = "tell the story of a session",
//                          .arguments = "[ID]", .options = options,
//                          .example = "nd7 show --follow"};
//   int cmd_show(int argc, char** argv) {
//     auto args = parse_options(usage_show, argc, argv);
//     if (!args) return args.error();
//     ...
#pragma once

#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nd7 {

struct Option {
  const char* name;  // long name without dashes
  char letter;       // short form, 0: none
  const char* value; // name of the value for help ("PATH"), nullptr: a switch
  const char* help;  // one line, lower case, no full stop
};

struct Usage {
  const char* name;                     // the subcommand
  const char* summary;                  // one line for `nd7 --help`
  const char* arguments = "";           // "[ID]", "[--] PROGRAM [ARGS]"
  std::span<const Option> options = {}; // --help comes by itself
  const char* details = "";             // paragraphs for --help and the manual page; may be empty
  const char* example = "";             // one or more lines, shown indented
  bool stop_at_first = false;           // options end at the first argument (PROGRAM's own follow)
  bool hidden = false;                  // not in `nd7 --help` or the completions
};

class Arguments {
public:
  struct Given {
    std::string name;
    std::string value;
  };
  bool has(std::string_view option) const;
  // The last value given, `otherwise` when none.
  std::string value(std::string_view option, std::string_view otherwise = {}) const;
  std::vector<std::string> values(std::string_view option) const; // all, in order
  const std::vector<Given>& given() const { return given_; }      // all options, in order
  const std::vector<std::string>& rest() const { return rest_; }  // what is no option

  std::vector<Given> given_;
  std::vector<std::string> rest_;
};

// argv[0] is the subcommand's name. The error is the status to exit with: 0 after --help, 2 after
// an error, which has been said on stderr. Uses getopt's globals: call from one thread.
std::expected<Arguments, int> parse_options(const Usage& usage, int argc, char** argv);

// "nd7 show: TEXT, try nd7 show --help" on stderr; returns 2.
int usage_error(const Usage& usage, std::string_view text);

std::string help_text(const Usage& usage);
// A section of nd7(1) in man(7) format.
std::string manual_text(const Usage& usage);

// The entry of `names` that `word` most likely meant, nullopt when none is close (edit distance
// at most a third of the length, transpositions count one).
std::optional<std::string> closest(std::string_view word, const std::vector<std::string>& names);

} // namespace nd7
