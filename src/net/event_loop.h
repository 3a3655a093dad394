// Descriptors and timers behind one epoll descriptor, for code that never blocks.
//
// One thread only. A handler may forget itself or others, also in the middle of a batch: events
// that were already fetched for a forgotten descriptor are dropped.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>

#include "base/fd.h"
#include "base/result.h"

namespace nd7 {

class EventLoop {
public:
  using Clock = std::chrono::steady_clock;
  using Handler = std::function<void(std::uint32_t events)>; // EPOLLIN, EPOLLOUT, ...
  using Timer = std::uint64_t;                               // 0: none

  static Result<std::unique_ptr<EventLoop>> make();

  // Readable when run_ready() has something to do.
  int fd() const { return epoll_.get(); }
  // Does what is ready, without waiting.
  void run_ready();

  // Level-triggered. The descriptor stays the caller's, who forgets it before closing it.
  Result<> watch(int fd, std::uint32_t events, Handler handler);
  void change(int fd, std::uint32_t events);
  void forget(int fd);

  Timer after(std::chrono::milliseconds delay, std::function<void()> body);
  void cancel(Timer timer);

private:
  struct Watch {
    int fd;
    std::uint32_t events;
    Handler handler;
  };

  EventLoop() = default;
  void run_timers();
  void arm();

  Fd epoll_;
  Fd timer_fd_;
  std::uint64_t next_id_ = 1;
  std::unordered_map<std::uint64_t, std::shared_ptr<Watch>> watches_; // by id, never reused
  std::unordered_map<int, std::uint64_t> ids_;                        // by descriptor
  std::map<std::pair<Clock::time_point, Timer>, std::function<void()>> timers_;
  std::unordered_map<Timer, Clock::time_point> due_;
};

} // namespace nd7
