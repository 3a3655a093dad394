// What the policy files add to the rules of a session: policy.toml and the project's .nd7.toml.
#pragma once

#include <string>

#include "core/policy.h"
#include "core/policy_text.h"
#include "session/session.h"

namespace nd7 {

struct PolicyFilesInput {
  std::string config; // where policy.toml lies
  std::string state;  // where accepted contents are remembered
  std::string home;
  std::string project; // resolved
  std::string profile; // empty: none
};

// Adds rules, hosts, ports and listeners, with the links of their paths followed. A missing file
// says nothing; one that cannot be read or does not parse is an error, and nothing may start.
// `.nd7.toml` may only narrow unless its very bytes were accepted (is_trusted).
Result<PolicySettings> add_policy_files(const PolicyFilesInput& input, Policy& policy);

// Rules under the other mounts of their file systems, as /proc/self/mountinfo has them now.
Result<> add_mount_aliases(Policy& policy);

// `nd7 trust`: this content of this file, by BLAKE3 of both; another byte or place is not accepted.
// Kept in `state`/trusted, which no session may write.
bool is_trusted(const std::string& state, const std::string& path, std::string_view content);
Result<> set_trusted(const std::string& state, const std::string& path, std::string_view content);

} // namespace nd7
