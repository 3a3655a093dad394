#include "view/paint.h"

namespace nd7 {
namespace {

const char* code(Tint tint) {
  switch (tint) {
  case Tint::plain:
    return "";
  case Tint::dim:
    return "\x1b[2m";
  case Tint::bold:
    return "\x1b[1m";
  case Tint::red:
    return "\x1b[31m";
  case Tint::green:
    return "\x1b[32m";
  case Tint::yellow:
    return "\x1b[33m";
  case Tint::blue:
    return "\x1b[34m";
  case Tint::cyan:
    return "\x1b[36m";
  }
  return "";
}

} // namespace

std::string tinted(Tint tint, std::string_view text, bool color) {
  if (!color || tint == Tint::plain) return std::string(text);
  return code(tint) + std::string(text) + "\x1b[0m";
}

} // namespace nd7
