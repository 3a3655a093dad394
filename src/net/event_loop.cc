#include "net/event_loop.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <array>
#include <string>

namespace nd7 {
namespace {

constexpr int kEventsPerBatch = 64;
constexpr std::uint64_t kTimerId = 0;

} // namespace

Result<std::unique_ptr<EventLoop>> EventLoop::make() {
  std::unique_ptr<EventLoop> loop(new EventLoop);
  loop->epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  if (!loop->epoll_) return os_error("make an epoll descriptor");
  loop->timer_fd_ = Fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!loop->timer_fd_) return os_error("make a timer");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kTimerId;
  if (epoll_ctl(loop->epoll_.get(), EPOLL_CTL_ADD, loop->timer_fd_.get(), &event) != 0) {
    return os_error("watch a timer");
  }
  return loop;
}

Result<> EventLoop::watch(int fd, std::uint32_t events, Handler handler) {
  const std::uint64_t id = next_id_++;
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return os_error("watch a descriptor");
  watches_[id] = std::make_shared<Watch>(Watch{fd, events, std::move(handler)});
  ids_[fd] = id;
  return {};
}

void EventLoop::change(int fd, std::uint32_t events) {
  const auto found = ids_.find(fd);
  if (found == ids_.end()) return;
  Watch& watch = *watches_.at(found->second);
  if (watch.events == events) return;
  watch.events = events;
  epoll_event event{};
  event.events = events;
  event.data.u64 = found->second;
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void EventLoop::forget(int fd) {
  const auto found = ids_.find(fd);
  if (found == ids_.end()) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  watches_.erase(found->second);
  ids_.erase(found);
}

EventLoop::Timer EventLoop::after(std::chrono::milliseconds delay, std::function<void()> body) {
  const Timer timer = next_id_++;
  const auto when = Clock::now() + delay;
  timers_[{when, timer}] = std::move(body);
  due_[timer] = when;
  if (timers_.begin()->first.second == timer) arm();
  return timer;
}

// The descriptor may then fire once for nothing, which costs less than setting it each time.
void EventLoop::cancel(Timer timer) {
  const auto found = due_.find(timer);
  if (found == due_.end()) return;
  timers_.erase({found->second, timer});
  due_.erase(found);
}

void EventLoop::arm() {
  itimerspec spec{};
  if (!timers_.empty()) {
    auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(timers_.begin()->first.first -
                                                                     Clock::now());
    if (left.count() < 1) left = std::chrono::nanoseconds(1);
    spec.it_value.tv_sec = left.count() / 1'000'000'000;
    spec.it_value.tv_nsec = left.count() % 1'000'000'000;
  }
  timerfd_settime(timer_fd_.get(), 0, &spec, nullptr);
}

void EventLoop::run_timers() {
  std::uint64_t expirations = 0;
  while (read(timer_fd_.get(), &expirations, sizeof expirations) < 0 && errno == EINTR) {
  }
  const auto now = Clock::now();
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    auto node = timers_.extract(timers_.begin());
    due_.erase(node.key().second);
    node.mapped()();
  }
  arm();
}

void EventLoop::run_ready() {
  std::array<epoll_event, kEventsPerBatch> events;
  const int count = epoll_wait(epoll_.get(), events.data(), kEventsPerBatch, 0);
  bool timers = false;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 == kTimerId) {
      timers = true;
      continue;
    }
    const auto found = watches_.find(event.data.u64);
    if (found == watches_.end()) continue;
    const std::shared_ptr<Watch> held = found->second; // the handler may forget itself
    held->handler(event.events);
  }
  if (timers) run_timers();
}

} // namespace nd7
