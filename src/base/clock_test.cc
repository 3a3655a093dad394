#include "base/clock.h"

#include <gtest/gtest.h>

namespace nd7 {
namespace {

TEST(Clock, TheFakeMovesOnlyWhenTold) {
  FakeClock clock;
  const auto wall = clock.wall_ns();
  clock.tick(5);
  EXPECT_EQ(clock.wall_ns(), wall + 5);
  EXPECT_GT(system_clock().wall_ns(), 1'600'000'000'000'000'000);
  const auto earlier = system_clock().boot_ns();
  EXPECT_LE(earlier, system_clock().boot_ns());
}

TEST(Clock, TimesInWords) {
  EXPECT_EQ(utc_time(1'758'240'000'123'456'789), "2025-09-19T00:00:00.123Z");
  EXPECT_EQ(utc_time(-1), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(duration_text(400'000'000), "0.4 s");
  EXPECT_EQ(duration_text(12'000'000'000), "12 s");
  EXPECT_EQ(duration_text(200'000'000'000), "3 min 20 s");
  EXPECT_EQ(duration_text(7'500'000'000'000), "2 h 5 min");
  EXPECT_EQ(duration_text(-5), "0.0 s");
}

} // namespace
} // namespace nd7
