// The head of an HTTP CONNECT request (RFC 9110 9.3.6, RFC 9112), read strictly: whatever two
// parsers could read differently is refused, so that the host that is checked is the host that is
// dialled.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "core/address.h"

namespace nd7 {

struct ConnectTarget {
  std::string name;               // lower case, without a trailing dot; empty for an address
  std::optional<Address> address; // of a literal, with the port
  std::uint16_t port = 0;
};

struct HttpRefusal {
  int status = 400;
  std::string sentence; // for the person or model behind the client
};

// `head`: everything up to and with the empty line. Only "CONNECT host:port HTTP/1.0" or 1.1,
// single spaces, CRLF. A host is letters, digits, '-', '_' and dots (an internationalised name
// comes as xn--...), a strict IPv4 address, or an IPv6 address in brackets. Names that a browser or
// inet_aton would read as an IPv4 address (127.1, 0x7f.1, 2130706433) are refused, as are '%', NUL,
// user names, a port with a sign or a leading zero. A Host header must name the same place or be
// absent.
std::expected<ConnectTarget, HttpRefusal> parse_connect_request(std::string_view head);

// The same for "host:port" alone.
std::expected<ConnectTarget, HttpRefusal> parse_host_port(std::string_view text);

} // namespace nd7
