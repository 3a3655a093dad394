// What this kernel, container and configuration can do, asked once.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace nd7::os {

struct KernelFacts {
  std::string release;          // uname -r
  int landlock_abi = 0;         // 0: absent or off
  bool user_notify = false;     // seccomp user notifications
  bool killable_wait = false;   // WAIT_KILLABLE_RECV (5.19)
  bool sync_wake_up = false;    // 6.6
  bool pidfd_getfd = false;     // works on a child of ours
  bool process_vm = false;      // process_vm_readv works on a child of ours
  int yama_scope = -1;          // -1: no Yama
  bool filtered = false;        // a seccomp filter of somebody else is on already
  bool listener_taken = false;  // ... and holds a listener: nothing can be nested
  bool in_landlock = false;     // reserved for later kernels; cannot be asked today
  bool user_namespaces = false; // user.max_user_namespaces > 0
};
// `landlock_abi_max` lowers the ABI for tests; 0: no limit.
KernelFacts kernel_facts(int landlock_abi_max = 0);

// What keeps a session from starting here, with the repair; empty when nothing does.
struct Obstacle {
  std::string what;
  std::string repair;
};
std::vector<Obstacle> obstacles(const KernelFacts& facts, bool root);

} // namespace nd7::os
