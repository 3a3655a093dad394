// What is generated from the table of commands: completions for three shells, and nd7(1).
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/ui.h"

namespace nd7 {

extern const Usage usage_completions;
extern const Usage usage_manual;
const Usage usage_completions{
    .name = "completions",
    .summary = "print shell completions",
    .arguments = "bash|zsh|fish",
    .example = "nd7 completions bash > ~/.local/share/bash-completion/completions/nd7",
    .hidden = true};
const Usage usage_manual{.name = "manual",
                         .summary = "print the manual page nd7(1)",
                         .example = "nd7 manual | man -l -",
                         .hidden = true};

namespace {

std::string names_of_commands() {
  std::string names = "help";
  for (const Command& command : commands()) {
    if (!command.usage->hidden) names += fmt::format(" {}", command.usage->name);
  }
  return names;
}

std::string options_of(const Usage& usage) {
  std::string words = "--help";
  for (const Option& option : usage.options) words += fmt::format(" --{}", option.name);
  return words;
}

std::string bash() {
  std::string out = fmt::format("_nd7() {{\n"
                                "  local cur=${{COMP_WORDS[COMP_CWORD]}} words=\n"
                                "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                                "    COMPREPLY=($(compgen -W '{} --help --version' -- \"$cur\"))\n"
                                "    return\n"
                                "  fi\n"
                                "  case ${{COMP_WORDS[1]}} in\n"
                                "    help) words='{}' ;;\n",
                                names_of_commands(), names_of_commands());
  for (const Command& command : commands()) {
    if (command.usage->hidden) continue;
    out += fmt::format("    {}) words='{}' ;;\n", command.usage->name, options_of(*command.usage));
  }
  out += "  esac\n"
         "  case $cur in\n"
         "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
         "    *) if [ \"${COMP_WORDS[1]}\" = help ]; then\n"
         "         COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "       fi ;;\n"
         "  esac\n"
         "}\n"
         "complete -o default -F _nd7 nd7\n";
  return out;
}

// Inside single quotes of a shell.
std::string quoted(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out;
}

std::string zsh() {
  std::string out = "#compdef nd7\n_nd7() {\n  local -a commands\n  commands=(\n";
  for (const Command& command : commands()) {
    if (command.usage->hidden) continue;
    out += fmt::format("    '{}:{}'\n", command.usage->name, quoted(command.usage->summary));
  }
  out += "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
         "  case $words[2] in\n";
  for (const Command& command : commands()) {
    if (command.usage->hidden) continue;
    out += fmt::format("    {}) compadd -- {} ; _files ;;\n", command.usage->name,
                       options_of(*command.usage));
  }
  out += "    *) _files ;;\n  esac\n}\n"
         "if [ \"$funcstack[1]\" = _nd7 ]; then _nd7 \"$@\"; else compdef _nd7 nd7; fi\n";
  return out;
}

std::string fish() {
  std::string out;
  for (const Command& command : commands()) {
    const Usage& usage = *command.usage;
    if (usage.hidden) continue;
    out += fmt::format("complete -c nd7 -n __fish_use_subcommand -f -a {} -d '{}'\n", usage.name,
                       quoted(usage.summary));
    for (const Option& option : usage.options) {
      out += fmt::format("complete -c nd7 -n '__fish_seen_subcommand_from {}' -l {}", usage.name,
                         option.name);
      if (option.letter != 0) out += fmt::format(" -s {}", option.letter);
      if (option.value != nullptr) out += " -r";
      out += fmt::format(" -d '{}'\n", quoted(option.help));
    }
  }
  return out;
}

} // namespace

int cmd_completions(int argc, char** argv) {
  auto args = parse_options(usage_completions, argc, argv);
  if (!args) return args.error();
  if (args->rest().size() != 1) return usage_error(usage_completions, "name one shell");
  const std::string& shell = args->rest().front();
  if (shell == "bash") {
    print(bash());
  } else if (shell == "zsh") {
    print(zsh());
  } else if (shell == "fish") {
    print(fish());
  } else {
    return usage_error(usage_completions, "no completions for that shell");
  }
  return 0;
}

int cmd_manual(int argc, char** argv) {
  auto args = parse_options(usage_manual, argc, argv);
  if (!args) return args.error();
  std::string out =
      ".TH ND7 1\n.SH NAME\nnd7 \\- run AI coding agents in a sandbox, with a record\n"
      ".SH SYNOPSIS\n.B nd7\nCOMMAND [options] [arguments]\n.SH COMMANDS\n";
  for (const Command& command : commands()) {
    if (!command.usage->hidden) out += manual_text(*command.usage);
  }
  out += ".SH EXIT STATUS\n0 done, 1 the answer is no, 2 usage or cannot. nd7 run exits as PROGRAM "
         "did; 125 nd7 itself failed or refused to start, 126 not executable, 127 not found.\n"
         ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nno colour\n.TP\n"
         ".B XDG_STATE_HOME, XDG_CONFIG_HOME, XDG_CACHE_HOME, XDG_RUNTIME_DIR\n"
         "where the log, the policy, the caches and the sockets are\n";
  print(out);
  return 0;
}

} // namespace nd7
