// Result<T>: what a fallible call returns. No exceptions cross units.
//
// Three words are kept apart everywhere: a denial is a value (core/policy.h, Verdict), a failure is
// an Error, a bug is an assertion.
#pragma once

#include <cerrno>
#include <expected>
#include <string>
#include <utility>

namespace nd7 {

struct Error {
  std::string text; // what was tried and why it failed, lower case, no full stop
  int os_errno = 0; // the errno behind it, 0 if none
  std::string hint; // the command or change that would help; may be empty
};

template <class T = void> using Result = std::expected<T, Error>;

// A failure that is not the kernel's: fail("policy.toml:3:1: unknown key 'fiels'").
[[nodiscard]] std::unexpected<Error> fail(std::string text, std::string hint = {});

// The one place where errno becomes a sentence: os_error("open /x/y") reads errno at the call.
[[nodiscard]] std::unexpected<Error> os_error(std::string what, int error = errno);

// "EACCES" for 13; "E9999" for a number without a name. Used in log entries (`result`).
std::string errno_name(int error);

} // namespace nd7
