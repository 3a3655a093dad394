#include "base/result.h"

#include <cstring>

namespace nd7 {

std::unexpected<Error> fail(std::string text, std::string hint) {
  return std::unexpected(Error{std::move(text), 0, std::move(hint)});
}

std::unexpected<Error> os_error(std::string what, int error) {
  what += ": ";
  const char* words = strerrordesc_np(error);
  what += words != nullptr ? words : "unknown error";
  return std::unexpected(Error{std::move(what), error, {}});
}

std::string errno_name(int error) {
  if (error == 0) return "0";
  const char* name = strerrorname_np(error);
  return name != nullptr ? std::string(name) : "E" + std::to_string(error);
}

} // namespace nd7
