#include "gate/exec_trees.h"

#include <algorithm>
#include <cstdlib>
#include <fnmatch.h>

#include <sys/stat.h>

#include "os/files.h"
#include "os/resolve.h"

namespace nd7 {
namespace {

constexpr std::size_t trees_max = 4096;
constexpr int depth_max = 8;

bool closed(const Policy& policy, const std::string& path) {
  FileAction action;
  action.path = path;
  struct stat st {};
  if (stat(path.c_str(), &st) == 0) {
    action.exists = true;
    action.is_directory = S_ISDIR(st.st_mode);
    action.object = {st.st_dev, st.st_ino};
  }
  return !decide(policy, action).allowed();
}

// Could a rule that closes something lie strictly below this directory? Patterns without a fixed
// depth are left to the gate: they close reads there, not the start of programs.
bool closes_below(const Policy& policy, const std::string& directory) {
  for (const Rule& rule : policy.rules) {
    if (rule.effect != Effect::deny_read && rule.effect != Effect::never_read) continue;
    if (rule.shape == Shape::glob || rule.shape == Shape::suffix) {
      if (rule.scope.empty() || rule.path.find('/') == std::string::npos) {
        if (rule.scope == directory) return true;
        continue;
      }
      const std::string pattern = rule.scope + (rule.path.starts_with('/') ? "" : "/") + rule.path;
      // Component by component as far as the directory goes.
      std::size_t p = 0, d = 0;
      bool matches = true;
      while (matches && d < directory.size()) {
        const std::size_t pe = std::min(pattern.find('/', p + 1), pattern.size());
        const std::size_t de = std::min(directory.find('/', d + 1), directory.size());
        const std::string part = pattern.substr(p, pe - p);
        // A bare wildcard means every directory of this depth: left to the gate like those without
        // a fixed depth.
        matches = p < pattern.size() && part != "/*" && !part.contains("**") &&
                  fnmatch(part.c_str(), directory.substr(d, de - d).c_str(), FNM_PATHNAME) == 0;
        p = pe;
        d = de;
      }
      if (matches && p < pattern.size()) return true;
    } else if (rule.path.size() > directory.size() && os::is_below(rule.path, directory)) {
      return true;
    }
  }
  return false;
}

class Collector {
public:
  Collector(const Policy& policy, const TreeInput& input, std::vector<std::string>* left_out)
      : policy_(policy), input_(input), left_out_(left_out) {}

  void add(const std::string& path) {
    const std::string real = os::real_path(path);
    if (!real.empty() && real != "/") add_real(real, 0);
  }

  // Where programs are made while the session runs: the whole tree, though single names in it may
  // be closed. Those are the gate's to refuse; an exec of them too.
  void add_whole(const std::string& path) {
    const std::string real = os::real_path(path);
    if (!real.empty() && real != "/") trees.push_back(real);
  }

  std::vector<std::string> trees;

private:
  void add_real(const std::string& real, int depth) {
    for (const std::string& tree : trees)
      if (os::is_below(real, tree)) return;
    if (trees.size() >= trees_max || depth > depth_max) {
      left_out_->push_back(real);
      return;
    }
    // What a rule closes by name here may lie elsewhere by a link: the object decides too.
    if (closed(policy_, real)) return;
    const bool holds_home =
        depth == 0 &&
        std::any_of(input_.homes.begin(), input_.homes.end(), [&](const std::string& home) {
          return home != real && os::is_below(home, real);
        });
    struct stat st {};
    if (lstat(real.c_str(), &st) != 0) return;
    if (!S_ISDIR(st.st_mode)) {
      if (S_ISREG(st.st_mode)) trees.push_back(real);
      return;
    }
    if (!holds_home && !closes_below(policy_, real)) {
      trees.push_back(real);
      return;
    }
    if (holds_home) return; // never by a tree that contains the home
    auto names = os::list_directory(real);
    if (!names) {
      left_out_->push_back(real);
      return;
    }
    for (const std::string& name : *names) {
      const std::string child = real + "/" + name;
      struct stat child_st {};
      // Links are followed only where they lead; their targets have trees of their own.
      if (lstat(child.c_str(), &child_st) != 0 || S_ISLNK(child_st.st_mode)) continue;
      add_real(child, depth + 1); // no link on the way: its name is the real one
    }
  }

  const Policy& policy_;
  const TreeInput& input_;
  std::vector<std::string>* left_out_;
};

std::string parent(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

} // namespace

std::vector<std::string> exec_trees(const Policy& policy, const TreeInput& input,
                                    std::vector<std::string>* left_out) {
  Collector out(policy, input, left_out);
  for (const char* tree : {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc",
                           "/opt", "/nix/store", "/gnu/store", "/home/linuxbrew/.linuxbrew"})
    out.add(tree);
  out.add_whole("/tmp");
  out.add_whole(input.project);
  for (const std::string& path : input.extra) out.add_whole(path);
  for (const std::string& home : input.homes) out.add(home);
  for (const std::string& path : input.path_directories) {
    const std::string real = os::real_path(path);
    // Never: places of daemons, and shared memory.
    if (real.empty() || os::is_below(real, "/run") || os::is_below(real, "/dev") ||
        os::is_below(real, "/proc") || os::is_below(real, "/sys"))
      continue;
    out.add(real);
  }
  for (const os::ProgramChain& program : input.programs) {
    for (const std::string& package : program.packages) {
      // Packages start programs of their neighbours (a launcher's platform package).
      const std::size_t modules = package.rfind("/node_modules/");
      out.add(package.substr(0, modules) + "/node_modules");
    }
    for (const std::string& file : program.files) out.add(parent(file));
  }
  return out.trees;
}

os::LandlockRuleset session_ruleset(const std::vector<std::string>& trees) {
  using namespace os;
  os::LandlockRuleset out;
  const LandlockAbi& newest = landlock_abis().back();
  out.fs = newest.fs;
  out.net = newest.net;
  out.scope = newest.scope;
  for (const std::string& tree : trees)
    out.paths.push_back(
        {tree, landlock_fs::execute | landlock_fs::read_file | landlock_fs::read_dir});
  return out;
}

} // namespace nd7
