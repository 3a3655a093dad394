// Which trees Landlock grants for execution (and, with it, reading): the plan, before it is
// applied.
//
// execve opens the file for reading, and nobody can perform an exec for another: so the domain
// needs EXECUTE and READ_FILE natively on everything that may be started. Every open is trapped and
// decided by the policy all the same.
#pragma once

#include <string>
#include <vector>

#include "core/policy.h"
#include "os/landlock.h"
#include "os/program.h"

namespace nd7 {

struct TreeInput {
  std::vector<std::string> homes;
  std::string project;
  std::vector<std::string> path_directories; // of PATH
  std::vector<os::ProgramChain> programs;    // PROGRAM and nd7 itself
  std::vector<std::string> extra;            // private temporary and cache directories
};

// Trees without anything closed to reading: where something is, its siblings along the way are
// named instead. Bounded; a directory too large to be listed is left out and said in `left_out`.
std::vector<std::string> exec_trees(const Policy& policy, const TreeInput& input,
                                    std::vector<std::string>* left_out);
os::LandlockRuleset session_ruleset(const std::vector<std::string>& trees);

} // namespace nd7
