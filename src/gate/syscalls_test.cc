#include "gate/syscalls.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <netinet/in.h>
#include <rapidcheck/gtest.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <fstream>
#include <set>
#include <string>

#include "os/kernel_abi.h"

namespace nd7 {
namespace {

using os::FilterAction;

class Filter : public testing::Test {
protected:
  FilterAction ask(int number, std::uint64_t a = 0, std::uint64_t b = 0, std::uint64_t c = 0,
                   std::uint64_t d = 0) const {
    const std::uint64_t args[6] = {a, b, c, d, 0, 0};
    return os::evaluate_filter(program_, os::native_arch(), number, args);
  }
  std::vector<sock_filter> program_ = *os::build_filter(filter_rows({true}));
  const FilterAction pass_{FilterAction::allow, 0};
  const FilterAction trap_{FilterAction::notify, 0};
  static FilterAction refused(int error) { return {FilterAction::refuse, error}; }
};

TEST_F(Filter, AnswersEveryRowAsTheTableSays) {
  for (const CallRow& row : call_table()) {
    const FilterAction action = ask(row.number);
    switch (row.treatment) {
    case Treatment::pass:
      EXPECT_EQ(action, pass_) << row.name;
      break;
    case Treatment::trap:
      EXPECT_EQ(action, trap_) << row.name;
      break;
    case Treatment::refuse:
      EXPECT_EQ(action, refused(row.error)) << row.name;
      break;
    case Treatment::rules:
      break; // below
    }
  }
}

TEST_F(Filter, RefusesWhatTheTableDoesNotKnow) {
  std::set<int> known;
  for (const CallRow& row : call_table()) known.insert(row.number);
  for (int number = 0; number < 1024; ++number) {
    if (known.contains(number)) continue;
    EXPECT_EQ(ask(number), refused(ENOSYS)) << number;
  }
  EXPECT_EQ(ask(-1), refused(ENOSYS));
  EXPECT_EQ(ask(0x7fffffff), refused(ENOSYS));
}

TEST_F(Filter, RefusesForeignArchitecturesAndX32) {
  const std::uint64_t none[6]{};
  for (const CallRow& row : call_table()) {
    EXPECT_EQ(os::evaluate_filter(program_, AUDIT_ARCH_I386, row.number, none), refused(ENOSYS));
    EXPECT_EQ(ask(row.number | 0x40000000), refused(ENOSYS)) << row.name;
  }
}

TEST_F(Filter, OpensTrapUnlessTheyGiveAPathOnly) {
  EXPECT_EQ(ask(__NR_openat, 0, 0, O_RDONLY), trap_);
  EXPECT_EQ(ask(__NR_openat, 0, 0, O_RDWR | O_CREAT), trap_);
  EXPECT_EQ(ask(__NR_openat, 0, 0, O_PATH | O_CLOEXEC), pass_);
  EXPECT_EQ(ask(__NR_openat2), refused(ENOSYS));
}

TEST_F(Filter, NoNamespaces) {
  for (const int flag : {CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER,
                         CLONE_NEWPID, CLONE_NEWNET}) {
    EXPECT_EQ(ask(__NR_clone, static_cast<std::uint64_t>(flag) | SIGCHLD), refused(EPERM));
    EXPECT_EQ(ask(__NR_unshare, static_cast<std::uint64_t>(flag)), refused(EPERM));
  }
  EXPECT_EQ(ask(__NR_unshare, 0x80), refused(EPERM));
  EXPECT_EQ(ask(__NR_unshare, CLONE_FS), pass_);
  EXPECT_EQ(ask(__NR_clone, CLONE_VM | CLONE_VFORK | SIGCHLD), pass_);
}

TEST_F(Filter, TerminalTricksInBothSpellings) {
  for (const std::uint64_t high : {std::uint64_t{0}, std::uint64_t{0xdeadbeef} << 32}) {
    EXPECT_EQ(ask(__NR_ioctl, 0, high | TIOCSTI), refused(EPERM));
    EXPECT_EQ(ask(__NR_ioctl, 0, high | 0x541c), refused(EPERM));
    EXPECT_EQ(ask(__NR_ioctl, 0, high | TIOCSPGRP), trap_);
  }
  EXPECT_EQ(ask(__NR_ioctl, 0, TCGETS), pass_);
  EXPECT_EQ(ask(__NR_ioctl, 0, 0x40086602), trap_);          // FS_IOC_SETFLAGS
  EXPECT_EQ(ask(__NR_ioctl, 0, 0x5000940e), refused(EPERM)); // btrfs: create a subvolume
  EXPECT_EQ(ask(__NR_ioctl, 0, 0x40049409), pass_);          // FICLONE
}

TEST_F(Filter, Sockets) {
  EXPECT_EQ(ask(__NR_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC), pass_);
  EXPECT_EQ(ask(__NR_socket, AF_UNIX, SOCK_DGRAM), trap_);
  EXPECT_EQ(ask(__NR_socket, AF_INET, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_TCP), pass_);
  EXPECT_EQ(ask(__NR_socket, AF_INET6, SOCK_STREAM, 262), refused(EPROTONOSUPPORT));
  EXPECT_EQ(ask(__NR_socket, AF_INET, SOCK_STREAM, 132 /* SCTP */), trap_);
  EXPECT_EQ(ask(__NR_socket, AF_INET, SOCK_DGRAM), trap_);
  EXPECT_EQ(ask(__NR_socket, AF_NETLINK, SOCK_RAW, 0), pass_);
  EXPECT_EQ(ask(__NR_socket, AF_NETLINK, SOCK_RAW, 4), trap_);
  EXPECT_EQ(ask(__NR_socket, AF_VSOCK, SOCK_STREAM), trap_);
  EXPECT_EQ(ask(__NR_sendto, 0, 0, 0, MSG_FASTOPEN), refused(EOPNOTSUPP));
  EXPECT_EQ(ask(__NR_sendmsg, 0, 0, MSG_FASTOPEN | MSG_NOSIGNAL), refused(EOPNOTSUPP));
  EXPECT_EQ(ask(__NR_sendmmsg, 0, 0, 0, MSG_FASTOPEN), refused(EOPNOTSUPP));
}

TEST_F(Filter, AnswersDumpableWithoutDoingIt) {
  EXPECT_EQ(ask(__NR_prctl, PR_SET_DUMPABLE, 0), refused(0));
  EXPECT_EQ(ask(__NR_prctl, PR_SET_DUMPABLE, 1), pass_);
  EXPECT_EQ(ask(__NR_prctl, PR_SET_NAME), pass_);
}

TEST_F(Filter, SignalsAreTrappedWithoutAScope) {
  const auto unscoped = *os::build_filter(filter_rows({false}));
  const std::uint64_t args[6] = {1, 2, 3, 0, 0, 0};
  EXPECT_EQ(os::evaluate_filter(unscoped, os::native_arch(), __NR_tgkill, args), trap_);
  EXPECT_EQ(ask(__NR_tgkill, 1, 2, 3), pass_);
  EXPECT_EQ(ask(__NR_kill, 1, 9), trap_);
}

TEST(FilterProgram, WideTestsLookAtAllBits) {
  os::FilterRow row{1, {FilterAction::allow, 0}, {}};
  row.rules.push_back(
      {{{0, ~std::uint64_t{0}, 0x100000002, true, false}}, {FilterAction::refuse, EPERM}});
  row.rules.push_back({{{1, ~std::uint64_t{0}, 5, true, true}}, {FilterAction::notify, 0}});
  const auto program = *os::build_filter({row});
  const auto ask = [&](std::uint64_t a, std::uint64_t b) {
    const std::uint64_t args[6] = {a, b, 0, 0, 0, 0};
    return os::evaluate_filter(program, os::native_arch(), 1, args);
  };
  EXPECT_EQ(ask(0x100000002, 5).error, EPERM);
  EXPECT_EQ(ask(2, 5).kind, FilterAction::allow);
  EXPECT_EQ(ask(2, 6).kind, FilterAction::notify);
  EXPECT_EQ(ask(2, 0x100000005).kind, FilterAction::notify);
}

RC_GTEST_PROP(FilterProgram, FindsEveryRowOfAnyTable, ()) {
  const auto numbers = *rc::gen::container<std::set<int>>(rc::gen::inRange(0, 600));
  std::vector<os::FilterRow> rows;
  for (const int number : numbers) rows.push_back({number, {FilterAction::refuse, number + 1}, {}});
  const auto program = os::build_filter(rows);
  RC_ASSERT(program.has_value());
  const std::uint64_t none[6]{};
  for (int number = 0; number < 600; ++number) {
    const auto action = os::evaluate_filter(*program, os::native_arch(), number, none);
    RC_ASSERT(action.error == (numbers.contains(number) ? number + 1 : ENOSYS));
  }
}

TEST(CallTable, TwoRowsForACallAreAnError) {
  EXPECT_FALSE(os::build_filter({{1, {}, {}}, {1, {}, {}}}).has_value());
}

// The headers' own list of calls: each is in some class.
TEST(CallTable, KnowsEveryCallOfTheHeaders) {
  std::ifstream header("/usr/include/x86_64-linux-gnu/asm/unistd_64.h");
  if (!header) GTEST_SKIP() << "no list of system calls on this machine";
  std::string line;
  int seen = 0;
  while (std::getline(header, line)) {
    if (!line.starts_with("#define __NR_")) continue;
    const std::size_t space = line.rfind(' ');
    EXPECT_NE(find_call(std::stoi(line.substr(space + 1))), nullptr) << line;
    ++seen;
  }
  EXPECT_GT(seen, 300);
}

} // namespace
} // namespace nd7
