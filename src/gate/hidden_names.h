// Files in closed places that have a second name elsewhere: a hard link to a key that was made
// before the session. Found by identity, and looked for only when somebody meets a file with more
// than one link, which is rare: no tree is walked at the start.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "core/policy.h"

namespace nd7 {

class HiddenNames {
public:
  // `verdict` allowed an object with several names; what it is by the closed places' own listing.
  Verdict judge(const Policy& policy, ObjectId id, const Verdict& verdict);

private:
  void refresh(const Policy& policy);
  struct Hidden {
    std::string path;
    std::string reason;
  };
  std::mutex lock_;
  std::map<ObjectId, Hidden> hidden_;
  std::uint64_t listed_at_ns_ = 0, cost_ns_ = 0;
  bool complete_ = true;
};

} // namespace nd7
