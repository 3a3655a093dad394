#include "os/seccomp_filter.h"

#include <algorithm>
#include <cstddef>

#include <linux/audit.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include "os/kernel_abi.h"

namespace nd7::os {
namespace {

constexpr std::uint32_t x32_bit = 0x40000000;
constexpr auto nr_offset = static_cast<std::uint32_t>(offsetof(seccomp_data, nr));
constexpr auto arch_offset = static_cast<std::uint32_t>(offsetof(seccomp_data, arch));

std::uint32_t arg_offset(unsigned index, bool high) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args)) + index * 8 + (high ? 4 : 0);
}

sock_filter statement(int code, std::uint32_t k) {
  return {static_cast<__u16>(code), 0, 0, k};
}

sock_filter branch(int code, std::uint32_t k, unsigned yes, unsigned no) {
  return {static_cast<__u16>(code), static_cast<__u8>(yes), static_cast<__u8>(no), k};
}

std::uint32_t return_value(const FilterAction& action) {
  switch (action.kind) {
  case FilterAction::allow:
    return SECCOMP_RET_ALLOW;
  case FilterAction::notify:
    return SECCOMP_RET_USER_NOTIF;
  case FilterAction::refuse:
    break;
  }
  return SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(action.error) & SECCOMP_RET_DATA);
}

using Program = std::vector<sock_filter>;

// One test: falls through when it holds, else jumps over `skip` instructions that follow it.
void emit_test(Program& out, const ArgTest& test, unsigned skip) {
  const auto half = [&](bool high, bool last) {
    const auto mask = static_cast<std::uint32_t>(high ? test.mask >> 32 : test.mask);
    const auto value = static_cast<std::uint32_t>(high ? test.value >> 32 : test.value);
    out.push_back(statement(BPF_LD | BPF_W | BPF_ABS, arg_offset(test.index, high)));
    out.push_back(statement(BPF_ALU | BPF_AND | BPF_K, mask));
    if (test.negate && !last) {
      // Not equal holds as soon as one half differs: jump over the second half's three.
      out.push_back(branch(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 3));
    } else if (test.negate) {
      out.push_back(branch(BPF_JMP | BPF_JEQ | BPF_K, value, skip, 0));
    } else {
      out.push_back(branch(BPF_JMP | BPF_JEQ | BPF_K, value, 0, last ? skip : skip + 3));
    }
  };
  if (test.wide) half(true, false);
  half(false, true);
}

unsigned test_length(const ArgTest& test) {
  return test.wide ? 6 : 3;
}

Program row_program(const FilterRow& row) {
  Program out;
  for (const ArgRule& rule : row.rules) {
    unsigned rest = 1; // the return at the end of the rule
    for (const ArgTest& test : rule.all) rest += test_length(test);
    for (const ArgTest& test : rule.all) {
      rest -= test_length(test);
      emit_test(out, test, rest);
    }
    out.push_back(statement(BPF_RET | BPF_K, return_value(rule.then)));
  }
  out.push_back(statement(BPF_RET | BPF_K, return_value(row.action)));
  return out;
}

// Binary search over rows[first, last); leaves are placed inline. Jumps further than a byte's reach
// go through an unconditional BPF_JA, whose offset has 32 bits.
Program search(std::span<const FilterRow> rows) {
  Program out;
  if (rows.size() == 1) {
    const Program body = row_program(rows[0]);
    out.push_back(
        branch(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(rows[0].number), 1, 0));
    out.push_back(statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS));
    out.insert(out.end(), body.begin(), body.end());
    return out;
  }
  const std::size_t middle = rows.size() / 2;
  const Program low = search(rows.first(middle));
  const Program high = search(rows.subspan(middle));
  out.push_back(
      branch(BPF_JMP | BPF_JGE | BPF_K, static_cast<std::uint32_t>(rows[middle].number), 0, 1));
  out.push_back(statement(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(low.size())));
  out.insert(out.end(), low.begin(), low.end());
  out.insert(out.end(), high.begin(), high.end());
  return out;
}

} // namespace

std::uint32_t native_arch() {
#if defined(__x86_64__)
  return AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
  return AUDIT_ARCH_AARCH64;
#else
#error "nd7 knows no system call numbers for this architecture"
#endif
}

Result<std::vector<sock_filter>> build_filter(std::vector<FilterRow> rows) {
  std::sort(rows.begin(), rows.end(),
            [](const FilterRow& a, const FilterRow& b) { return a.number < b.number; });
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (rows[i].number == rows[i - 1].number)
      return fail(fmt::format("system call {} has two rows", rows[i].number));
  Program out;
  out.push_back(statement(BPF_LD | BPF_W | BPF_ABS, arch_offset));
  out.push_back(branch(BPF_JMP | BPF_JEQ | BPF_K, native_arch(), 1, 0));
  out.push_back(statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS)); // foreign ABI
  out.push_back(statement(BPF_LD | BPF_W | BPF_ABS, nr_offset));
  out.push_back(branch(BPF_JMP | BPF_JGE | BPF_K, x32_bit, 0, 1)); // x32, and -1
  out.push_back(statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS));
  if (rows.empty()) {
    out.push_back(statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS));
  } else {
    const Program body = search(rows);
    out.insert(out.end(), body.begin(), body.end());
  }
  if (out.size() > BPF_MAXINSNS)
    return fail(fmt::format("the filter has {} instructions, the kernel takes {}", out.size(),
                            static_cast<unsigned>(BPF_MAXINSNS)));
  return out;
}

FilterAction evaluate_filter(std::span<const sock_filter> program, std::uint32_t arch, int number,
                             const std::uint64_t (&args)[6]) {
  seccomp_data data{};
  data.nr = number;
  data.arch = arch;
  for (unsigned i = 0; i < 6; ++i) data.args[i] = args[i];
  const auto* words = reinterpret_cast<const unsigned char*>(&data);
  std::uint32_t a = 0;
  std::size_t pc = 0;
  while (pc < program.size()) {
    const sock_filter& op = program[pc++];
    switch (op.code) {
    case BPF_LD | BPF_W | BPF_ABS:
      if (op.k + 4 > sizeof data) return {};
      a = 0;
      for (unsigned i = 4; i-- > 0;) a = a << 8 | words[op.k + i];
      break;
    case BPF_ALU | BPF_AND | BPF_K:
      a &= op.k;
      break;
    case BPF_JMP | BPF_JA:
      pc += op.k;
      break;
    case BPF_JMP | BPF_JEQ | BPF_K:
      pc += a == op.k ? op.jt : op.jf;
      break;
    case BPF_JMP | BPF_JGE | BPF_K:
      pc += a >= op.k ? op.jt : op.jf;
      break;
    case BPF_RET | BPF_K:
      if (op.k == SECCOMP_RET_ALLOW) return {FilterAction::allow, 0};
      if (op.k == SECCOMP_RET_USER_NOTIF) return {FilterAction::notify, 0};
      return {FilterAction::refuse, static_cast<int>(op.k & SECCOMP_RET_DATA)};
    default:
      return {};
    }
  }
  return {};
}

int install_filter(const sock_filter* program, unsigned short length) {
  sock_fprog prog{length, const_cast<sock_filter*>(program)};
  return static_cast<int>(
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
              SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &prog));
}

} // namespace nd7::os
