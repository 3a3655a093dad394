// What the agent is told about refusals: one short text, under 2 kB, once per distinct refusal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nd7 {

struct Told {
  std::string operation; // "write", "read", "connect", ...
  std::string object;    // path or address as it really was
  std::string rule;
  std::string open_with; // the command for the person, empty when no grant opens it
  std::uint64_t times = 1;
};

inline constexpr std::size_t told_bytes_max = 1900;

// Empty for no refusals. Control characters in names are shown, never sent. The speaker ("nd7: ")
// is put in front by agents/.
std::string tell(const std::vector<Told>& refusals);
// The one line for an agent without hooks, with a newline.
std::string tell_line(const Told& refusal);

} // namespace nd7
