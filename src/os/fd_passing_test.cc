#include "os/fd_passing.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>

namespace nd7::os {
namespace {

struct Pair {
  Fd a, b;
};

Pair make_pair_of(int type) {
  int sv[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, sv), 0);
  return {Fd(sv[0]), Fd(sv[1])};
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

TEST(FdPassing, CarriesBytesAndTheSameObjectCloseOnExec) {
  Pair pair = make_pair_of(SOCK_SEQPACKET);
  Fd file(open("/", O_RDONLY | O_DIRECTORY));
  const std::array fds{file.get(), file.get()};
  ASSERT_TRUE(send_fds(pair.a.get(), fds, "hello"));
  auto got = receive_fds(pair.b.get());
  ASSERT_TRUE(got) << got.error().text;
  EXPECT_EQ(got->bytes, "hello");
  ASSERT_EQ(got->fds.size(), 2U);
  struct stat x {
  }, y{};
  ASSERT_EQ(fstat(file.get(), &x), 0);
  ASSERT_EQ(fstat(got->fds[1].get(), &y), 0);
  EXPECT_EQ(x.st_ino, y.st_ino);
  EXPECT_EQ(fcntl(got->fds[0].get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(FdPassing, BytesAlone) {
  Pair pair = make_pair_of(SOCK_SEQPACKET);
  ASSERT_TRUE(send_fds(pair.a.get(), {}, "x"));
  auto got = receive_fds(pair.b.get());
  ASSERT_TRUE(got);
  EXPECT_EQ(got->bytes, "x");
  EXPECT_TRUE(got->fds.empty());
}

TEST(FdPassing, TheEndIsAnEmptyMessageAndSendingIntoItAnErrorNotASignal) {
  Pair pair = make_pair_of(SOCK_STREAM);
  pair.a.reset();
  auto got = receive_fds(pair.b.get());
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->bytes.empty() && got->fds.empty());
  const auto sent = send_fds(pair.b.get(), {}, "x");
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().os_errno, EPIPE);
}

TEST(FdPassing, RefusesWhatDoesNotFit) {
  Pair pair = make_pair_of(SOCK_SEQPACKET);
  const std::vector<int> many(kPassedFdsMax + 1, pair.a.get());
  EXPECT_FALSE(send_fds(pair.a.get(), many, "x"));
  EXPECT_FALSE(send_fds(pair.a.get(), {}, ""));
}

TEST(FdPassing, AMessageWithTooManyDescriptorsLeavesNoneBehind) {
  Pair pair = make_pair_of(SOCK_SEQPACKET);
  const std::size_t before = open_descriptors();
  // Sent by hand, since send_fds does not let it through.
  constexpr std::size_t count = kPassedFdsMax + 4;
  alignas(cmsghdr) char control[CMSG_SPACE(count * sizeof(int))] = {};
  char byte = 'x';
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(count * sizeof(int));
  std::vector<int> fds(count, pair.a.get());
  memcpy(CMSG_DATA(header), fds.data(), count * sizeof(int));
  ASSERT_EQ(sendmsg(pair.a.get(), &message, 0), 1);
  const auto got = receive_fds(pair.b.get());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().os_errno, EMSGSIZE);
  EXPECT_EQ(open_descriptors(), before);
}

} // namespace
} // namespace nd7::os
