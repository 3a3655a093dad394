// The JSON scanner against nlohmann's: what ours accepts, theirs accepts with the same values (but
// for numbers beyond double's range); what theirs accepts and ours does not is one of the things
// ours refuses on purpose.
#include "base/json.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

bool refused_on_purpose(const std::string& error, std::string_view bytes) {
  return error.find("duplicate key") != std::string::npos ||
         error.find("nested too deep") != std::string::npos ||
         error.find("expected an object") != std::string::npos || // theirs takes any value
         bytes.starts_with("\xef\xbb\xbf") ||                     // and a byte order mark
         bytes.find('\0') != std::string_view::npos;              // and NUL for the end
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto object = nd7::scan_json_object(bytes);
  const bool theirs = nlohmann::json::accept(bytes);
  bool too_large = false; // a number beyond double's range: JSON to us, an error to them
  if (object && !theirs) {
    try {
      too_large = nlohmann::json::parse(bytes).is_discarded();
    } catch (const nlohmann::json::out_of_range&) {
      too_large = true;
    }
  }
  if (!object) {
    check(!theirs || refused_on_purpose(object.error().text, bytes));
  } else if (!too_large) {
    check(theirs);
    const auto other = nlohmann::json::parse(bytes);
    check(other.size() == object->members().size());
    nd7::JsonWriter again;
    for (const auto& member : object->members()) {
      check(other.contains(member.key));
      const auto& value = other[member.key];
      if (value.is_string()) check(object->text(member.key) == value.get<std::string>());
      if (value.is_number_integer() && !value.is_number_unsigned()) {
        check(object->integer(member.key) == value.get<std::int64_t>());
      }
      if (value.is_array()) {
        const auto elements = nd7::scan_json_array(member.value);
        check(elements.has_value() && elements->size() == value.size());
      }
      again.raw(member.key, member.value);
    }
    // What is written from the spans scans to the same members.
    const std::string text = again.finish();
    const auto second = nd7::scan_json_object(text);
    check(second.has_value() && second->members().size() == object->members().size());
  }
  const std::string quoted = nd7::json_quote(bytes);
  check(nlohmann::json::accept(quoted));
  if (nd7::is_utf8(bytes)) {
    check(nd7::json_unquote(quoted) == bytes);
    check(nlohmann::json::parse(quoted).get<std::string>() == bytes);
  }
  check(nd7::base64_decode(nd7::base64(bytes)) == bytes);
  nd7::json_unquote(bytes);
  nd7::base64_decode(bytes);
  return 0;
}
