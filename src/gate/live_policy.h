// The policy in force: replaced as a whole, read without waiting by every receiver.
#pragma once

#include <memory>
#include <mutex>

#include "core/policy.h"

namespace nd7 {

class LivePolicy {
public:
  explicit LivePolicy(Policy first) : now_(std::make_shared<const Policy>(std::move(first))) {}
  std::shared_ptr<const Policy> now() const {
    const std::lock_guard hold(lock_);
    return now_;
  }
  void replace(Policy next) {
    auto fresh = std::make_shared<const Policy>(std::move(next));
    const std::lock_guard hold(lock_);
    now_ = std::move(fresh);
  }

private:
  mutable std::mutex lock_;
  std::shared_ptr<const Policy> now_;
};

}  // namespace nd7
