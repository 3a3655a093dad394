#include "session/inflight.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"

namespace nd7 {

Result<Inflight> Inflight::create(const std::string& session_directory) {
  const std::string path = session_directory + "/inflight";
  const Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return os_error(path);
  constexpr std::size_t size = slots_max * sizeof(Slot);
  // Really allocated: a hole in a full file system would be a SIGBUS at the first write.
  if (const int error = posix_fallocate(fd.get(), 0, static_cast<off_t>(size)); error != 0)
    return os_error(path, error);
  void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) return os_error(path);
  Inflight out;
  out.slots_ = static_cast<Slot*>(at);
  for (std::size_t i = 0; i < slots_max; ++i) out.slots_[i].busy.store(0);
  return out;
}

std::vector<std::string> Inflight::left_over(const std::string& session_directory) {
  std::vector<std::string> out;
  const Fd fd(::open((session_directory + "/inflight").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return out;
  Slot slot{};
  char bytes[sizeof slot];
  for (std::size_t i = 0; i < slots_max; ++i) {
    if (pread(fd.get(), bytes, sizeof bytes, static_cast<off_t>(i * sizeof slot)) != sizeof bytes)
      break;
    std::uint32_t busy = 0, size = 0;
    std::memcpy(&busy, bytes, sizeof busy);
    std::memcpy(&size, bytes + offsetof(Slot, size), sizeof size);
    if (busy != 1 || size > sizeof slot.text) continue;
    out.emplace_back(bytes + offsetof(Slot, text), size);
  }
  return out;
}

Inflight::Inflight(Inflight&& other) noexcept : slots_(std::exchange(other.slots_, nullptr)) {}

Inflight::~Inflight() {
  if (slots_ != nullptr) munmap(slots_, slots_max * sizeof(Slot));
}

void Inflight::begin(std::size_t slot, std::string_view operation, std::string_view path) {
  Slot& s = slots_[slot % slots_max];
  const std::size_t head = std::min(operation.size(), text_bytes_max / 2);
  const std::size_t tail = std::min(path.size(), text_bytes_max - head - 1);
  std::memcpy(s.text, operation.data(), head);
  s.text[head] = ' ';
  std::memcpy(s.text + head + 1, path.data(), tail);
  s.size = static_cast<std::uint32_t>(head + 1 + tail);
  s.busy.store(1, std::memory_order_release);
}

void Inflight::end(std::size_t slot) {
  slots_[slot % slots_max].busy.store(0, std::memory_order_release);
}

} // namespace nd7
