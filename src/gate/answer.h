// What the gate says to a trapped call. Every branch returns one; forgetting does not compile.
#pragma once

#include <cerrno>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/fd.h"

namespace nd7 {

struct Answer {
  enum class Kind : std::uint8_t {
    value,        // the call's result
    error,        // errno
    descriptor,   // install `fd` in the caller, its number is the result
    let_continue, // the kernel runs the call; only where a raced argument gains nothing
    later,        // `work` may block: the pool runs it and gives its answer
    done,         // answered already (several descriptors)
  };
  Kind kind = Kind::error;
  std::int64_t number = EACCES;
  Fd fd;
  bool close_on_exec = false;
  std::function<Answer()> work;
  std::function<void()> after; // run once the caller has its descriptor, before it runs on

  static Answer value(std::int64_t v) { return make(Kind::value, v); }
  static Answer error(int e) { return make(Kind::error, e); }
  static Answer go_on() { return make(Kind::let_continue, 0); }
  static Answer done() { return make(Kind::done, 0); }
  static Answer descriptor(Fd fd, bool close_on_exec) {
    Answer out = make(Kind::descriptor, 0);
    out.fd = std::move(fd);
    out.close_on_exec = close_on_exec;
    return out;
  }
  static Answer later(std::function<Answer()> work) {
    Answer out = make(Kind::later, 0);
    out.work = std::move(work);
    return out;
  }
  // From a system call of ours that failed or returned a number.
  static Answer of(std::int64_t result) { return result < 0 ? error(errno) : value(result); }

private:
  static Answer make(Kind kind, std::int64_t number) {
    Answer out;
    out.kind = kind;
    out.number = number;
    return out;
  }
};

} // namespace nd7
