// The verifier on any bytes, whole and in chunks; then the readers that show uses. A log that was
// found consistent must be the bytes of a chain: one changed byte is found.
#include "core/verify.h"

#include <cstdlib>

#include "base/bytes.h"
#include "core/event.h"
#include "core/timeline.h"
#include "view/text.h"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

struct Count final : nd7::Reporter {
  void entry(const nd7::CheckedEntry& entry) override { check(entry.seq == entries++); }
  void fault(const nd7::Fault& fault) override {
    ++faults;
    offset = fault.offset_bytes;
  }
  std::uint64_t entries = 0;
  std::uint64_t faults = 0;
  std::uint64_t offset = 0;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  Count whole;
  const nd7::VerifyResult result = nd7::verify_log(bytes, {}, whole);
  check(whole.faults == (result.consistent ? 0 : 1));
  check(whole.entries == result.entries);
  check(whole.offset <= size);
  check(!result.consistent || result.size_bytes == size);

  Count chunked;
  nd7::Verifier verifier({}, chunked);
  for (std::size_t at = 0; at < size; at += 7) verifier.feed(std::string_view(bytes).substr(at, 7));
  const nd7::VerifyResult again = verifier.finish();
  check(again.consistent == result.consistent && again.entries == result.entries);
  check(chunked.offset == whole.offset);

  if (result.consistent && result.entries > 0) {
    std::string changed = bytes;
    const std::size_t at = size / 2 < size - result.torn_bytes - 1 ? size / 2 : 0;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    Count broken;
    check(!nd7::verify_log(changed, {}, broken).consistent);
  }

  nd7::Timeline timeline({.home = "/home/u"});
  nd7::Entry entry;
  nd7::LineSplitter().feed(bytes, [&](std::string_view line) {
    if (nd7::read_entry(line, entry)) timeline.add(entry);
    return true;
  });
  for (const bool verbose : {false, true}) {
    const std::string text = nd7::timeline_text(timeline, {.verbose = verbose});
    for (const char c : text)
      check(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f));
  }
  return 0;
}
