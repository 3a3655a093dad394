// The listener side of seccomp user notifications: receive, still valid?, answer, hand over an fd.
//
// What bites (measured; see docs/decisions/notify-answers.md):
//  - ADDFD with the SEND flag resumes the caller while we still hold our copy of the descriptor:
//    ETXTBSY on write+close+exec, flock failures. So: ADDFD, close our copy, SEND.
//  - WAIT_KILLABLE_RECV (set at install) keeps a received call from being interrupted and run
//  twice.
//  - The pid of a notification is a thread id in our pid namespace.
//  - SYNC_WAKE_UP (6.6) keeps an answer at 8 us instead of 45.
// Source: seccomp_unotify(2).
#pragma once

#include <cstdint>

#include <linux/seccomp.h>

#include "base/fd.h"
#include "base/result.h"

namespace nd7::os {

enum class Received {
  call,
  gone,
  ended,
  failed
}; // gone: the caller died meanwhile; ended: no
   // process is left under the filter

class Listener {
public:
  explicit Listener(Fd fd) : fd_(std::move(fd)) {}
  int fd() const { return fd_.get(); }
  // Asks for synchronous wake-ups; false before 6.6.
  bool set_sync_wake_up();
  // Blocks for the next notification.
  Received receive(seccomp_notif& out);
  bool still_valid(std::uint64_t id) const;
  // Answers; false when the caller is gone.
  bool answer_value(std::uint64_t id, std::int64_t value);
  bool answer_error(std::uint64_t id, int error);
  bool answer_continue(std::uint64_t id);
  // Installs a duplicate of `fd` in the caller. Returns its number there or -1 with errno (EMFILE,
  // EBADF for an O_PATH descriptor, ENOENT when the caller is gone).
  int add_fd(std::uint64_t id, int fd, bool close_on_exec);

private:
  bool send(const seccomp_notif_resp& response);
  Fd fd_;
};

} // namespace nd7::os
