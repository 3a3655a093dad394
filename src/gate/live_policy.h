// The policy in force: replaced as a whole, read without waiting by every receiver.
#pragma once

#include <memory>
#include <mutex>

#include "core/policy.h"

namespace nd7 {

class LivePolicy {
public:
  // `granted`: the trees that Landlock grants for reading; empty where every read is performed.
  LivePolicy(Policy first, std::vector<std::string> granted) : granted_(std::move(granted)) {
    replace(std::move(first));
  }
  std::shared_ptr<const Policy> now() const {
    const std::lock_guard hold(lock_);
    return now_;
  }
  void replace(Policy next) {
    // A read rule that comes later switches its tree to performing from the next call on.
    compile(next);
    next.observed_trees.clear();
    for (const std::string& tree : granted_)
      if (!denies_read_below(next, tree)) next.observed_trees.push_back(tree);
    auto fresh = std::make_shared<const Policy>(std::move(next));
    const std::lock_guard hold(lock_);
    now_ = std::move(fresh);
  }

private:
  const std::vector<std::string> granted_;
  mutable std::mutex lock_;
  std::shared_ptr<const Policy> now_;
};

} // namespace nd7
