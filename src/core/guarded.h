// The built-in rules for writing: what a session may write, what runs later outside, what no grant
// reopens. Data, one row a place, with the reason; the rows are written down for the directories of
// one session by write_rules().
//
// Three kinds. *never*: no grant reopens it. *guarded*: refused unless granted by name. *judged*:
// the change is decided on its content (core/judge.h). Guards are suffixes (".git/hooks/*"): they
// hold at any depth below the project, for names made later too, and ignore case.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/policy.h"

namespace nd7 {

struct GuardRow {
  Effect effect;           // guarded, judged, or allow_write for an exception
  std::string_view suffix; // below the project
  std::string_view reason;
  Judge judge = Judge::none;
};
std::span<const GuardRow> guard_table();

// The rules of the table below one directory, and those of submodules' git directories. Part of
// write_rules() for the project; a directory granted besides needs them too.
std::vector<Rule> guard_rules(const std::string& scope);

// All paths absolute and resolved.
struct WriteInput {
  std::vector<std::string> homes;
  std::string project;
  std::string claude_dir;  // ~/.claude or CLAUDE_CONFIG_DIR
  std::string claude_json; // ~/.claude.json, or claude_dir/.claude.json
  std::string codex_dir;   // ~/.codex or CODEX_HOME
  std::string agent;       // whose state may be written: "claude", "codex"
  unsigned uid = 0;
  std::string tmp;                         // private temporary directory
  std::string cache;                       // private cache of package managers
  std::vector<std::string> own_places;     // nd7's records, configuration, sockets
  std::vector<std::string> program_files;  // nd7's and PROGRAM's own, and what they are loaded from
  std::vector<std::string> program_trees;  // packages that hold them
  std::vector<std::string> agent_commands; // files that the agents' settings name as commands
};
std::vector<Rule> write_rules(const WriteInput& input);

} // namespace nd7
