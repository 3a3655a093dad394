#include "os/seccomp_filter.h"

#include <cerrno>

#include <linux/audit.h>
#include <linux/bpf_common.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace nd7::os {
namespace {

constexpr std::uint64_t no_args[6]{};
constexpr std::uint64_t all_ones = ~std::uint64_t{0};

FilterAction refused(int error) {
  return {FilterAction::refuse, error};
}

// What the header promises, said a second time without jumps.
bool holds(const ArgTest& test, const std::uint64_t (&args)[6]) {
  const std::uint64_t width = test.wide ? all_ones : 0xffffffff;
  return ((args[test.index] & test.mask & width) == (test.value & width)) != test.negate;
}

FilterAction expected(const std::vector<FilterRow>& rows, int number,
                      const std::uint64_t (&args)[6]) {
  for (const FilterRow& row : rows) {
    if (row.number != number) continue;
    for (const ArgRule& rule : row.rules) {
      bool all = true;
      for (const ArgTest& test : rule.all) all = all && holds(test, args);
      if (all) return rule.then;
    }
    return row.action;
  }
  return refused(ENOSYS);
}

FilterAction any_action() {
  const auto kind =
      *rc::gen::element(FilterAction::allow, FilterAction::notify, FilterAction::refuse);
  return {kind, kind == FilterAction::refuse ? *rc::gen::inRange(0, 200) : 0};
}

// Few values, so that tests hold about as often as not; both halves are used.
std::uint64_t any_word() {
  return *rc::gen::element<std::uint64_t>(0, 1, 2, 3, 0x80000000, 0xffffffff, 0x100000000,
                                          0x100000001, 0x300000000, all_ones);
}

std::vector<FilterRow> any_rows() {
  std::vector<FilterRow> rows;
  const int count = *rc::gen::inRange(1, 120);
  int number = 0;
  for (int i = 0; i < count; ++i) {
    number += *rc::gen::inRange(1, 5);
    FilterRow row{number, any_action(), {}};
    for (int rule = *rc::gen::inRange(0, 4); rule > 0; --rule) {
      ArgRule made{{}, any_action()};
      for (int test = *rc::gen::inRange(0, 4); test > 0; --test)
        made.all.push_back({static_cast<std::uint8_t>(*rc::gen::inRange(0, 6)), any_word(),
                            any_word(), *rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>()});
      row.rules.push_back(made);
    }
    rows.push_back(row);
  }
  return rows;
}

RC_GTEST_PROP(SeccompFilter, AnswersAsItsRowsSay, ()) {
  const auto rows = any_rows();
  const auto program = build_filter(rows);
  RC_ASSERT(program.has_value());
  for (int i = 0; i < 40; ++i) {
    const int number = *rc::gen::inRange(-1, rows.back().number + 2);
    std::uint64_t args[6];
    for (auto& arg : args) arg = any_word();
    RC_ASSERT(evaluate_filter(*program, native_arch(), number, args) ==
              expected(rows, number, args));
  }
}

TEST(SeccompFilter, AForeignAbiAndX32AreRefusedWhateverTheirNumber) {
  const auto program = build_filter({{39, {FilterAction::allow, 0}, {}}});
  ASSERT_TRUE(program);
  EXPECT_EQ(evaluate_filter(*program, native_arch(), 39, no_args),
            (FilterAction{FilterAction::allow, 0}));
  EXPECT_EQ(evaluate_filter(*program, AUDIT_ARCH_I386, 39, no_args), refused(ENOSYS));
  EXPECT_EQ(evaluate_filter(*program, native_arch(), 39 | 0x40000000, no_args), refused(ENOSYS));
  EXPECT_EQ(evaluate_filter(*program, native_arch(), -1, no_args), refused(ENOSYS));
}

TEST(SeccompFilter, ACallWithoutARowIsRefused) {
  const auto none = build_filter({});
  ASSERT_TRUE(none);
  EXPECT_EQ(evaluate_filter(*none, native_arch(), 0, no_args), refused(ENOSYS));
  const auto some =
      build_filter({{10, {FilterAction::allow, 0}, {}}, {20, {FilterAction::notify, 0}, {}}});
  ASSERT_TRUE(some);
  for (const int number : {0, 9, 11, 19, 21, 100000})
    EXPECT_EQ(evaluate_filter(*some, native_arch(), number, no_args), refused(ENOSYS)) << number;
}

TEST(SeccompFilter, TwoRowsForANumberAreAnError) {
  const auto program = build_filter({{5, {}, {}}, {6, {}, {}}, {5, {FilterAction::allow, 0}, {}}});
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().text, "system call 5 has two rows");
}

TEST(SeccompFilter, TheLargestProgramIsRightInEachBranchAndALargerOneIsAnError) {
  // Each row with its two rules takes 12 instructions or so: jumps far beyond a byte's reach.
  const auto rows_of = [](int count) {
    std::vector<FilterRow> rows;
    for (int i = 0; i < count; ++i)
      rows.push_back({i * 3,
                      refused(i % 100),
                      {{{{1, all_ones, static_cast<std::uint64_t>(i), true, false}}, refused(1)},
                       {{{2, 0xff, 7, false, true}}, {FilterAction::notify, 0}}}});
    return rows;
  };
  int count = 1;
  while (build_filter(rows_of(count + 1))) ++count;
  const auto program = build_filter(rows_of(count));
  ASSERT_TRUE(program);
  EXPECT_GT(program->size(), std::size_t{BPF_MAXINSNS} - 30);
  EXPECT_LE(program->size(), std::size_t{BPF_MAXINSNS});
  const auto rows = rows_of(count);
  for (int i = 0; i < count; ++i)
    for (const std::uint64_t second : {std::uint64_t{0}, static_cast<std::uint64_t>(i)})
      for (const std::uint64_t third : {std::uint64_t{7}, std::uint64_t{8}}) {
        const std::uint64_t args[6]{0, second, third, 0, 0, 0};
        for (const int number : {i * 3, i * 3 + 1})
          EXPECT_EQ(evaluate_filter(*program, native_arch(), number, args),
                    expected(rows, number, args));
      }
  EXPECT_FALSE(build_filter(rows_of(count + 1)));
}

TEST(SeccompFilter, TheKernelReadsTheProgramAsTheEvaluatorDoes) {
  // Everything passes but: getppid is 0 by "success without doing anything"; getpgid of 1 is
  // refused.
  std::vector<FilterRow> rows;
  for (int number = 0; number < 470; ++number)
    if (number != SYS_getppid && number != SYS_getpgid)
      rows.push_back({number, {FilterAction::allow, 0}, {}});
  rows.push_back({SYS_getppid, refused(0), {}});
  rows.push_back({SYS_getpgid,
                  {FilterAction::allow, 0},
                  {{{{0, 0xffffffff, 1, false, false}}, refused(EDOM)}}});
  const auto program = build_filter(rows);
  ASSERT_TRUE(program);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(1);
    if (install_filter(program->data(), static_cast<unsigned short>(program->size())) < 0)
      _exit(errno == ENOSYS || errno == EBUSY ? 77 : 2);
    if (syscall(SYS_getppid) != 0) _exit(3);
    if (syscall(SYS_getpgid, 1) != -1 || errno != EDOM) _exit(4);
    if (syscall(SYS_getpgid, 0) <= 0) _exit(5);
    if (syscall(100000) != -1 || errno != ENOSYS) _exit(6);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "another filter with a listener is in place";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

} // namespace
} // namespace nd7::os
