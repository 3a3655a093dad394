#include "gate/hidden_names.h"

#include <algorithm>
#include <vector>

#include <sys/stat.h>

#include <fmt/format.h>

#include "base/clock.h"
#include "os/files.h"

namespace nd7 {
namespace {

constexpr std::size_t entries_max = 200000;    // listed at most; then unknown files are refused
constexpr std::uint64_t fresh_ns = 2000000000; // how old a listing may be
constexpr std::uint64_t cost_share = 50;       // and never more than 2 % of the time

} // namespace

void HiddenNames::refresh(const Policy& policy) {
  const std::uint64_t now = system_clock().boot_ns();
  if (listed_at_ns_ != 0 && now - listed_at_ns_ < std::max(fresh_ns, cost_ns_ * cost_share)) return;
  hidden_.clear();
  complete_ = true;
  std::size_t seen = 0;
  for (const Rule& rule : policy.rules) {
    // Of nd7's own places nobody in a session can have made a second name.
    if (rule.effect != Effect::deny_read) continue;
    if (rule.shape == Shape::suffix || rule.shape == Shape::glob) continue;
    std::vector<std::string> waiting = {rule.path};
    while (!waiting.empty()) {
      const std::string path = std::move(waiting.back());
      waiting.pop_back();
      struct stat st {};
      if (++seen > entries_max) {
        complete_ = false;
        break;
      }
      if (lstat(path.c_str(), &st) != 0) continue;
      if (S_ISREG(st.st_mode) && st.st_nlink > 1) {
        hidden_[{st.st_dev, st.st_ino}] = {path, rule.reason};
      } else if (S_ISDIR(st.st_mode)) {
        auto names = os::list_directory(path);
        if (!names) continue; // not readable for us, so not for the session either
        for (const std::string& name : *names) waiting.push_back(path + "/" + name);
      }
    }
  }
  listed_at_ns_ = system_clock().boot_ns();
  cost_ns_ = listed_at_ns_ - now;
}

Verdict HiddenNames::judge(const Policy& policy, ObjectId id, const Verdict& verdict) {
  const std::lock_guard hold(lock_);
  refresh(policy);
  const auto at = hidden_.find(id);
  if (at == hidden_.end()) {
    if (complete_) return verdict;
    return {Decision::deny,
            "credentials: this file has several names, and the closed places are too large to be "
            "searched for it",
            {},
            Judge::none};
  }
  FileAction action;
  action.path = at->second.path;
  action.object = id;
  action.exists = true;
  // Read by its closed name: what a grant opened there is open here.
  if (decide(policy, action).allowed()) return verdict;
  return {Decision::deny,
          fmt::format("credentials: another name of {} ({})", tilde(policy, at->second.path),
                      at->second.reason),
          "nd7 allow --read " + shell_word(tilde(policy, at->second.path)), Judge::none};
}

} // namespace nd7
