// The two times of an entry: UTC for people, time since boot for order. And a clock for tests.
#pragma once

#include <cstdint>
#include <string>

namespace nd7 {

class Clock {
public:
  virtual ~Clock() = default;
  virtual std::int64_t wall_ns() const = 0;  // since 1970, UTC; may jump
  virtual std::uint64_t boot_ns() const = 0; // since boot, counts suspend; never goes back
};

// The machine's own clocks (CLOCK_REALTIME, CLOCK_BOOTTIME).
const Clock& system_clock();

// Moves only when told to.
class FakeClock final : public Clock {
public:
  std::int64_t wall_ns() const override { return wall; }
  std::uint64_t boot_ns() const override { return boot; }
  void tick(std::uint64_t ns) {
    wall += static_cast<std::int64_t>(ns);
    boot += ns;
  }
  std::int64_t wall = 1'758'240'000'000'000'000;
  std::uint64_t boot = 1'000'000'000;
};

// "2025-09-19 00:00:00" and "00:00:00" in local time; "2025-09-19T00:00:00.000Z" in UTC.
std::string local_date_time(std::int64_t wall_ns);
std::string local_time(std::int64_t wall_ns);
std::string utc_time(std::int64_t wall_ns);
// "0.4 s", "12 s", "3 min 20 s", "2 h 5 min", "3 d 4 h"
std::string duration_text(std::int64_t ns);

} // namespace nd7
