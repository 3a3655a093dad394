// The table of commands and what is made from it: dispatch, help, completions, the manual page.
//
// A command is a file of its own (cli/NAME.cc) that defines
//   const Usage usage_NAME{...};            (cli/options.h)
//   int cmd_NAME(int argc, char** argv);    argv[0] is the subcommand; returns the exit status
// declared below, and one row in command.cc. Nothing else knows of it.
#pragma once

#include <span>

#include "cli/options.h"

namespace nd7 {

struct Command {
  const Usage* usage;
  int (*function)(int argc, char** argv);
};
std::span<const Command> commands();
const Command* find_command(std::string_view name);

// The program: argv as main got it. Exit status: the command's, 2 for usage.
int run_program(int argc, char** argv);

// Declare a new command here (both lines), then give it a row in command.cc.
extern const Usage usage_run;
int cmd_run(int argc, char** argv);
extern const Usage usage_allow;
int cmd_allow(int argc, char** argv);
extern const Usage usage_deny;
int cmd_deny(int argc, char** argv);
extern const Usage usage_rules;
int cmd_rules(int argc, char** argv);
extern const Usage usage_why;
int cmd_why(int argc, char** argv);
extern const Usage usage_trust;
int cmd_trust(int argc, char** argv);
extern const Usage usage_doctor;
int cmd_doctor(int argc, char** argv);
extern const Usage usage_completions;
int cmd_completions(int argc, char** argv);
extern const Usage usage_manual;
int cmd_manual(int argc, char** argv);
extern const Usage usage_init;
int cmd_init(int argc, char** argv);
extern const Usage usage_hook;
int cmd_hook(int argc, char** argv);
extern const Usage usage_verify;
int cmd_verify(int argc, char** argv);
extern const Usage usage_sessions;
int cmd_sessions(int argc, char** argv);
extern const Usage usage_show;
int cmd_show(int argc, char** argv);

} // namespace nd7
