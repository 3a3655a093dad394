// What a program is made of: the chain from the name on the PATH to the file the kernel loads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace nd7::os {

// The path with every link resolved; empty when it does not exist.
std::string real_path(const std::string& path);

struct ProgramChain {
  std::string found; // as found on the PATH, absolute, links not followed
  std::vector<std::string>
      files; // every link, the final file, `#!` and ELF interpreters; real paths
  std::vector<std::string> packages; // npm package directories that hold one of them
};

// Looks PROGRAM up as execvp does. os_errno: ENOENT (127), EACCES (126).
Result<std::string> find_program(std::string_view name, std::string_view path,
                                 const std::string& cwd);
// Follows links, `#!` lines and the ELF interpreter; at most 16 steps. A chain through /snap is an
// error: snaps need set-uid, which no_new_privs takes away.
Result<ProgramChain> program_chain(const std::string& found);

} // namespace nd7::os
