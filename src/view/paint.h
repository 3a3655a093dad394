// Colour for the terminal. It only repeats what the words say.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nd7 {

enum class Tint : std::uint8_t { plain, dim, bold, red, green, yellow, blue, cyan };
// `text` between the tint's escape sequences, or as it is without colour.
std::string tinted(Tint tint, std::string_view text, bool color);

} // namespace nd7
