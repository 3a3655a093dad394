#include "cli/command.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "cli/ui.h"

#ifndef ND7_VERSION
#define ND7_VERSION "0.1.0"
#endif

namespace nd7 {
namespace {

// One row a command, in the order of `nd7 --help`. To add one: declare its two names in command.h
// and write its row here; help, suggestions, completions and the manual page follow by themselves.
constexpr Command table[] = {
    {&usage_sessions, cmd_sessions},
    {&usage_show, cmd_show},
    {&usage_verify, cmd_verify},
    {&usage_run, cmd_run},
    {&usage_allow, cmd_allow},
    {&usage_deny, cmd_deny},
    {&usage_rules, cmd_rules},
    {&usage_why, cmd_why},
    {&usage_trust, cmd_trust},
    {&usage_doctor, cmd_doctor},
    {&usage_init, cmd_init},
    {&usage_hook, cmd_hook},
    {&usage_completions, cmd_completions},
    {&usage_manual, cmd_manual},
};

constexpr std::size_t name_column = 12;

std::string general_help() {
  std::string out = "nd7 runs AI coding agents in a sandbox the kernel enforces, and records it\n\n"
                    "usage: nd7 COMMAND [options] [arguments]\n\ncommands:\n";
  for (const Command& command : table) {
    if (command.usage->hidden) continue;
    out += fmt::format("  {:{}}{}\n", command.usage->name, name_column, command.usage->summary);
  }
  out += "\n`nd7 help COMMAND` or `nd7 COMMAND --help` tells more; `nd7 --version` the version\n\n"
         "example:\n  nd7 run claude\n";
  return out;
}

int unknown_command(std::string_view name) {
  std::vector<std::string> names{"help"};
  for (const Command& command : table) {
    if (!command.usage->hidden) names.emplace_back(command.usage->name);
  }
  std::string text = fmt::format("unknown command '{}'", visible(name));
  if (auto meant = closest(name, names)) text += fmt::format(", did you mean 'nd7 {}'?", *meant);
  say(text);
  say("try: nd7 --help");
  return 2;
}

int help(int argc, char** argv) {
  if (argc < 2) {
    print(general_help());
    return 0;
  }
  const Command* command = find_command(argv[1]);
  if (command == nullptr) return unknown_command(argv[1]);
  print(help_text(*command->usage));
  return 0;
}

int dispatch(int argc, char** argv) {
  if (argc < 2) {
    talk(general_help());
    return 2;
  }
  const std::string_view word = argv[1];
  if (word == "--help" || word == "-h") return help(1, argv);
  if (word == "help") return help(argc - 1, argv + 1);
  if (word == "--version" || word == "-V") {
    print("nd7 " ND7_VERSION "\n");
    return 0;
  }
  if (word.starts_with("-")) {
    say(fmt::format("unknown option '{}'", visible(word)));
    say("try: nd7 --help");
    return 2;
  }
  const Command* command = find_command(word);
  if (command == nullptr) return unknown_command(word);
  return command->function(argc - 1, argv + 1);
}

} // namespace

std::span<const Command> commands() {
  return table;
}

const Command* find_command(std::string_view name) {
  const auto* row = std::find_if(std::begin(table), std::end(table),
                                 [&](const Command& c) { return c.usage->name == name; });
  return row != std::end(table) ? row : nullptr;
}

int run_program(int argc, char** argv) {
  return finish_output(dispatch(argc, argv));
}

} // namespace nd7
