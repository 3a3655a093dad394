#include "net/admission.h"

#include <netinet/tcp.h>

#include "net/sockaddr.h"

namespace nd7 {
namespace {

constexpr std::chrono::seconds kGoodFor{10};

} // namespace

void Admission::admit(std::uint16_t local_port) {
  const std::scoped_lock lock(mutex_);
  const auto now = Clock::now();
  std::erase_if(ports_, [&](const auto& entry) { return entry.second < now; });
  ports_[local_port] = now + kGoodFor;
}

bool Admission::take(const Address& peer) {
  if (classify(peer) != AddressClass::loopback) return false;
  const std::scoped_lock lock(mutex_);
  const auto found = ports_.find(peer.port);
  if (found == ports_.end()) return false;
  const bool good = Clock::now() <= found->second;
  ports_.erase(found);
  return good;
}

Fd accept_admitted(int listener, Admission& admission) {
  for (;;) {
    SocketAddress peer;
    Fd fd(accept4(listener, peer.get(), &peer.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!fd) return {};
    if (!admission.take(peer.address())) continue;
    const int on = 1;
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
  }
}

} // namespace nd7
