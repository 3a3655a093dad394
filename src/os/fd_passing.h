// Descriptors sent over a unix socket (SCM_RIGHTS), with a few bytes beside them.
//
// What arrives is close-on-exec from its first moment. A message whose descriptors do not fit is an
// error and all that came is closed: a caller never holds part of a message.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace nd7::os {

inline constexpr std::size_t kPassedFdsMax = 16;
inline constexpr std::size_t kPassedBytesMax = 4096;

struct PassedMessage {
  std::string bytes; // empty together with fds: the other side closed
  std::vector<Fd> fds;
};

// The descriptors stay the caller's. `bytes`: 1..kPassedBytesMax (an empty message would look like
// the end). Never raises SIGPIPE.
Result<> send_fds(int socket, std::span<const int> fds, std::string_view bytes);
// One message of a SOCK_SEQPACKET or SOCK_DGRAM socket, or what one recvmsg of a stream yields.
// Waits unless the socket does not block; EAGAIN is then an error with that errno.
Result<PassedMessage> receive_fds(int socket);

} // namespace nd7::os
