// Unix sockets: only those bound in this session and granted ones; the hook socket by its name.
#pragma once

#include <sys/socket.h>

#include "gate/gate.h"

namespace nd7 {

// The abstract name that `nd7 hook` connects to; the gate leads it to the session's own socket.
std::string hook_address(uid_t uid);

Answer connect_unix(Context& c, Worker& w, Call& call, Fd socket, const sockaddr_storage& to,
                    socklen_t size);
Answer bind_unix(Context& c, Worker& w, Call& call, Fd socket, const sockaddr_storage& to,
                 socklen_t size);

} // namespace nd7
