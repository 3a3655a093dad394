// core's Address to and from the kernel's sockaddr.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "core/address.h"

namespace nd7 {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_storage);

  SocketAddress() = default;
  explicit SocketAddress(const Address& address, std::uint32_t scope = 0) {
    if (address.v6) {
      auto* in6 = reinterpret_cast<sockaddr_in6*>(&storage);
      in6->sin6_family = AF_INET6;
      in6->sin6_port = htons(address.port);
      in6->sin6_scope_id = scope;
      std::memcpy(&in6->sin6_addr, address.bytes.data(), 16);
      size = sizeof *in6;
    } else {
      auto* in = reinterpret_cast<sockaddr_in*>(&storage);
      in->sin_family = AF_INET;
      in->sin_port = htons(address.port);
      std::memcpy(&in->sin_addr, address.bytes.data(), 4);
      size = sizeof *in;
    }
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }

  Address address() const {
    Address result;
    if (storage.ss_family == AF_INET6) {
      const auto* in6 = reinterpret_cast<const sockaddr_in6*>(&storage);
      result.v6 = true;
      std::memcpy(result.bytes.data(), &in6->sin6_addr, 16);
      result.port = ntohs(in6->sin6_port);
    } else if (storage.ss_family == AF_INET) {
      const auto* in = reinterpret_cast<const sockaddr_in*>(&storage);
      std::memcpy(result.bytes.data(), &in->sin_addr, 4);
      result.port = ntohs(in->sin_port);
    }
    return result;
  }
};

} // namespace nd7
