// How fast the log is: appending entries of about 1.5 KB, and verifying them.
//   verify_bench [ENTRIES] [DIRECTORY]      defaults: 50000, a directory below TMPDIR
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "base/json.h"
#include "core/chain.h"
#include "core/verify.h"
#include "os/files.h"
#include "session/log_file.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Quiet final : nd7::Reporter {
  void fault(const nd7::Fault& fault) override { fmt::print("fault: {}\n", fault.detail); }
};

std::string sample_body() {
  nd7::JsonWriter body;
  body.number("pid", 4242).count("start", 123456).text("op", "openat").number("result", 0);
  body.text("call", "toolu_01VpVectorBashCall").text("join", "descendant").text("how", "performed");
  body.path("path", "/home/dev/project/src/main.cc").text("mode", "existing");
  std::string text;
  while (text.size() < 950) text += "test result: ok. 24 passed; 0 failed\n\"quoted\" ";
  body.text("stdout", text);
  return body.finish();
}

} // namespace

int main(int argc, char** argv) {
  const unsigned long entries = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 50000;
  const std::string directory =
      (argc > 2 ? std::filesystem::path(argv[2]) : std::filesystem::temp_directory_path()) /
      fmt::format("nd7-verify-bench-{}", ::getpid());
  nd7::prepare_hashing();
  const std::string body = sample_body();
  {
    auto log = nd7::LogFile::open(directory, "bench", true);
    if (!log) return fmt::print(stderr, "{}\n", log.error().text), 1;
    const auto start = Clock::now();
    for (unsigned long i = 0; i < entries; ++i) {
      auto done = (*log)->append({.source = "effect:kernel", .kind = "write", .body = body});
      if (!done) return fmt::print(stderr, "{}\n", done.error().text), 1;
    }
    const double spent = seconds_since(start);
    fmt::print("append: {:.2f} us an entry\n", spent * 1e6 / static_cast<double>(entries));
  }
  auto bytes = nd7::os::read_file(directory + "/events.ndjson", std::size_t{8} << 30);
  if (!bytes) return fmt::print(stderr, "{}\n", bytes.error().text), 1;
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    Quiet quiet;
    const auto start = Clock::now();
    const nd7::VerifyResult result = nd7::verify_log(*bytes, {}, quiet);
    best = std::min(best, seconds_since(start));
    if (!result.consistent || result.entries != entries) return 1;
  }
  const double size = static_cast<double>(bytes->size());
  fmt::print("verify: {:.0f} MB/s, {:.2f} us an entry of {:.0f} bytes\n", size / best / 1e6,
             best * 1e6 / static_cast<double>(entries), size / static_cast<double>(entries));
  std::filesystem::remove_all(directory);
  return 0;
}
