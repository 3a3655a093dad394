// Bytes as text and back: hex, and the form in which foreign bytes may reach a terminal.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace nd7 {

std::string hex(std::string_view bytes); // lower case
// nullopt for an odd length or anything but [0-9a-f]: one form only, so equal bytes are equal text.
std::optional<std::string> unhex(std::string_view text);
// Exactly `size` lower-case hex digits.
bool is_hex(std::string_view text, std::size_t size);

// What a person may be shown of bytes that somebody else chose. Control characters (C0, DEL, C1),
// characters that change direction (bidi), have no width or break lines, and bytes that are not
// UTF-8 become \n, \t, \x1b, \u202e, \xff. Everything else stays, so the result never moves the
// cursor, speaks to the terminal or imitates another name. Always one line.
std::string visible(std::string_view bytes);
// Columns that visible() text takes on a terminal: wide characters (East Asian, emoji) count two,
// combining marks none.
std::size_t columns(std::string_view visible_text);
// Cut to at most `width` columns; when something was cut the last column is an ellipsis.
std::string shorten(std::string_view visible_text, std::size_t width);

} // namespace nd7
