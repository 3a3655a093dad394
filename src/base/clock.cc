#include "base/clock.h"

#include <fmt/format.h>

#include <ctime>

namespace nd7 {
namespace {

constexpr std::int64_t ns_per_second = 1'000'000'000;

class SystemClock final : public Clock {
public:
  std::int64_t wall_ns() const override { return read(CLOCK_REALTIME); }
  std::uint64_t boot_ns() const override {
    return static_cast<std::uint64_t>(read(CLOCK_BOOTTIME));
  }

private:
  static std::int64_t read(clockid_t id) {
    timespec t{};
    ::clock_gettime(id, &t);
    return t.tv_sec * ns_per_second + t.tv_nsec;
  }
};

std::int64_t floor_seconds(std::int64_t ns) {
  return ns / ns_per_second - (ns % ns_per_second < 0 ? 1 : 0);
}

std::tm broken_down(std::int64_t wall_ns, bool utc) {
  const std::time_t seconds = floor_seconds(wall_ns);
  std::tm tm{};
  if (utc) {
    ::gmtime_r(&seconds, &tm);
  } else {
    ::localtime_r(&seconds, &tm);
  }
  return tm;
}

} // namespace

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

std::string local_date_time(std::int64_t wall_ns) {
  const std::tm t = broken_down(wall_ns, false);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", t.tm_year + 1900, t.tm_mon + 1,
                     t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec);
}

std::string local_time(std::int64_t wall_ns) {
  const std::tm t = broken_down(wall_ns, false);
  return fmt::format("{:02}:{:02}:{:02}", t.tm_hour, t.tm_min, t.tm_sec);
}

std::string utc_time(std::int64_t wall_ns) {
  const std::tm t = broken_down(wall_ns, true);
  const std::int64_t ms = (wall_ns - floor_seconds(wall_ns) * ns_per_second) / 1'000'000;
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", t.tm_year + 1900, t.tm_mon + 1,
                     t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec, ms);
}

std::string duration_text(std::int64_t ns) {
  if (ns < 0) ns = 0;
  const std::int64_t s = ns / ns_per_second;
  if (s < 10) return fmt::format("{}.{} s", s, ns % ns_per_second / 100'000'000);
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {} s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{} h {} min", s / 3600, s % 3600 / 60);
  return fmt::format("{} d {} h", s / 86400, s % 86400 / 3600);
}

} // namespace nd7
