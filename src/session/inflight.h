// What the gate is performing right now, in a shared mapping of sessions/ID/inflight: a crash in
// the middle of an operation becomes a named gap instead of silence.
//
// The file is a fixed number of slots, one a worker. A slot is valid when `busy` is 1; its text was
// complete before (release store). Layout is private to one nd7 version on one machine.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace nd7 {

class Inflight {
public:
  static constexpr std::size_t slots_max = 128;
  static constexpr std::size_t text_bytes_max = 500;

  static Result<Inflight> create(const std::string& session_directory);
  // The operations that were in flight when the file was last written; empty when none or no file.
  static std::vector<std::string> left_over(const std::string& session_directory);

  Inflight(Inflight&& other) noexcept;
  Inflight& operator=(Inflight&&) = delete;
  ~Inflight();

  void begin(std::size_t slot, std::string_view operation, std::string_view path);
  void end(std::size_t slot);

private:
  struct Slot {
    std::atomic<std::uint32_t> busy;
    std::uint32_t size;
    char text[504];
  };
  Inflight() = default;
  Slot* slots_ = nullptr;
};

} // namespace nd7
