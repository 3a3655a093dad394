#include "os/sock_diag.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/fd.h"

namespace nd7::os {
namespace {

std::uint64_t inode_of(const Fd& fd) {
  struct stat s {};
  EXPECT_EQ(fstat(fd.get(), &s), 0);
  return s.st_ino;
}

struct Listener {
  Fd fd;
  std::uint16_t port = 0;
};

Listener listen_on(const char* text, bool v6_only = false, std::uint16_t port = 0,
                   bool reuse_port = false, bool tie_to_lo = false) {
  const Address address = *parse_address(text);
  Listener result;
  result.fd = Fd(socket(address.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (reuse_port) setsockopt(result.fd.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  if (tie_to_lo) {
    EXPECT_EQ(setsockopt(result.fd.get(), SOL_SOCKET, SO_BINDTODEVICE, "lo", 3), 0);
  }
  sockaddr_storage storage{};
  socklen_t size = 0;
  if (address.v6) {
    const int only = v6_only ? 1 : 0;
    setsockopt(result.fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
    auto* in6 = reinterpret_cast<sockaddr_in6*>(&storage);
    in6->sin6_family = AF_INET6;
    std::memcpy(&in6->sin6_addr, address.bytes.data(), 16);
    in6->sin6_port = htons(port);
    size = sizeof *in6;
  } else {
    auto* in = reinterpret_cast<sockaddr_in*>(&storage);
    in->sin_family = AF_INET;
    std::memcpy(&in->sin_addr, address.bytes.data(), 4);
    in->sin_port = htons(port);
    size = sizeof *in;
  }
  EXPECT_EQ(bind(result.fd.get(), reinterpret_cast<sockaddr*>(&storage), size), 0)
      << std::strerror(errno);
  EXPECT_EQ(listen(result.fd.get(), 4), 0);
  size = sizeof storage;
  getsockname(result.fd.get(), reinterpret_cast<sockaddr*>(&storage), &size);
  result.port = ntohs(address.v6 ? reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port
                                 : reinterpret_cast<sockaddr_in*>(&storage)->sin_port);
  return result;
}

std::uint64_t found_at(const char* text, std::uint16_t port) {
  const Address address = *parse_address(text, port);
  const auto found = tcp_listener(address);
  EXPECT_TRUE(found) << found.error().text;
  // Both ways of asking must agree on whether somebody is there.
  const auto all = tcp_listeners(port);
  EXPECT_TRUE(all);
  bool any = false;
  for (const TcpSocket& s : *all) any = any || accepts(s, address);
  EXPECT_EQ(any, found->has_value()) << text;
  return *found ? (*found)->inode : 0;
}

TEST(SockDiag, FindsTheListenerOfOneAddressOnly) {
  const Listener a = listen_on("127.0.0.1");
  EXPECT_EQ(found_at("127.0.0.1", a.port), inode_of(a.fd));
  EXPECT_EQ(found_at("::ffff:127.0.0.1", a.port), inode_of(a.fd));
  EXPECT_EQ(found_at("0.0.0.0", a.port), inode_of(a.fd));
  EXPECT_EQ(found_at("127.0.0.2", a.port), 0U);
  EXPECT_EQ(found_at("::1", a.port), 0U);
  const auto found = tcp_listener(*parse_address("127.0.0.1", a.port));
  EXPECT_EQ((*found)->uid, getuid());
}

TEST(SockDiag, WildcardsAndDualStack) {
  const Listener any = listen_on("0.0.0.0");
  EXPECT_EQ(found_at("127.0.0.1", any.port), inode_of(any.fd));
  EXPECT_EQ(found_at("127.9.9.9", any.port), inode_of(any.fd));
  EXPECT_EQ(found_at("::1", any.port), 0U);

  const Listener dual = listen_on("::");
  EXPECT_EQ(found_at("::1", dual.port), inode_of(dual.fd));
  EXPECT_EQ(found_at("127.0.0.1", dual.port), inode_of(dual.fd));

  const Listener six = listen_on("::", true);
  EXPECT_EQ(found_at("::1", six.port), inode_of(six.fd));
  EXPECT_EQ(found_at("127.0.0.1", six.port), 0U);
}

TEST(SockDiag, TheExactListenerComesBeforeTheWildcard) {
  const Listener six = listen_on("::", true);
  const Listener exact = listen_on("127.0.0.1", false, six.port);
  EXPECT_EQ(found_at("127.0.0.1", six.port), inode_of(exact.fd));
  EXPECT_EQ(found_at("::1", six.port), inode_of(six.fd));
}

TEST(SockDiag, SocketsTiedToLoopbackAreSeen) {
  const Listener tied = listen_on("::", false, 0, false, true);
  EXPECT_EQ(found_at("127.0.0.1", tied.port), inode_of(tied.fd));
  EXPECT_EQ(found_at("::1", tied.port), inode_of(tied.fd));
}

TEST(SockDiag, ListsEveryMemberOfAReusePortGroup) {
  const Listener a = listen_on("127.0.0.1", false, 0, true);
  const Listener b = listen_on("127.0.0.1", false, a.port, true);
  const auto all = tcp_listeners(a.port);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 2U);
  const auto one = found_at("127.0.0.1", a.port);
  EXPECT_TRUE(one == inode_of(a.fd) || one == inode_of(b.fd));
}

TEST(SockDiag, ABoundSocketThatDoesNotListenIsNobody) {
  Listener a = listen_on("127.0.0.1");
  const std::uint16_t port = a.port;
  a.fd.reset();
  EXPECT_EQ(found_at("127.0.0.1", port), 0U);
}

TEST(SockDiag, NamesTheEndOfAConnection) {
  const Listener a = listen_on("127.0.0.1");
  Fd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(a.port);
  ASSERT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  sockaddr_in own{};
  socklen_t size = sizeof own;
  getsockname(client.get(), reinterpret_cast<sockaddr*>(&own), &size);
  const auto found = tcp_connection(*parse_address("127.0.0.1", ntohs(own.sin_port)),
                                    *parse_address("127.0.0.1", a.port));
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->inode, inode_of(client));
  const auto none =
      tcp_connection(*parse_address("127.0.0.1", a.port), *parse_address("127.0.0.1", 1));
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

TEST(SockDiag, NamesTheFileAUnixSocketIsBoundTo) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("nd7-diag-" + std::to_string(getpid()))).string();
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::memcpy(at.sun_path, path.c_str(), path.size() + 1);
  unlink(path.c_str());
  ASSERT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  ASSERT_EQ(listen(fd.get(), 1), 0);
  struct stat s {};
  ASSERT_EQ(lstat(path.c_str(), &s), 0);
  const auto found = unix_socket(inode_of(fd));
  unlink(path.c_str());
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->name, path);
  ASSERT_TRUE((*found)->bound);
  EXPECT_EQ((*found)->bound->inode, s.st_ino);
  EXPECT_EQ((*found)->bound->device, s.st_dev);
  const auto none = unix_socket(inode_of(fd) + 1000000);
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

} // namespace
} // namespace nd7::os
