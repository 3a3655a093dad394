#include "net/connect_request.h"

#include <fmt/format.h>

#include <algorithm>

namespace nd7 {
namespace {

constexpr std::size_t kNameBytesMax = 253;
constexpr std::size_t kLabelBytesMax = 63;

std::unexpected<HttpRefusal> bad(std::string sentence) {
  return std::unexpected(HttpRefusal{400, std::move(sentence)});
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_name_byte(char c) {
  return is_letter(c) || is_digit(c) || c == '-' || c == '_';
}

// WHATWG URL, "ends in a number": such a host is an IPv4 address to some and a name to others.
bool ends_in_number(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1);
  if (std::all_of(last.begin(), last.end(), is_digit)) return true;
  return last.size() >= 2 && last[0] == '0' && (last[1] == 'x' || last[1] == 'X');
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::optional<std::string> read_name(std::string_view text) {
  if (text.ends_with('.')) text.remove_suffix(1);
  if (text.empty() || text.size() > kNameBytesMax) return std::nullopt;
  for (std::string_view rest = text;;) {
    const std::size_t dot = rest.find('.');
    const std::string_view label = rest.substr(0, dot);
    if (label.empty() || label.size() > kLabelBytesMax) return std::nullopt;
    if (!std::all_of(label.begin(), label.end(), is_name_byte)) return std::nullopt;
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  if (ends_in_number(text)) return std::nullopt;
  return lower(text);
}

std::optional<std::uint16_t> read_port(std::string_view text) {
  if (text.empty() || text.size() > 5 || text[0] == '0') return std::nullopt;
  unsigned port = 0;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
    port = port * 10 + static_cast<unsigned>(c - '0');
  }
  if (port > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(port);
}

// A header line: token, colon, visible bytes, spaces and tabs. Folded lines are refused.
bool is_header(std::string_view line) {
  constexpr std::string_view kTokenMarks = "!#$%&'*+-.^_`|~";
  const std::size_t colon = line.find(':');
  if (colon == 0 || colon == std::string_view::npos) return false;
  for (const char c : line.substr(0, colon)) {
    if (!is_letter(c) && !is_digit(c) && kTokenMarks.find(c) == std::string_view::npos)
      return false;
  }
  return std::all_of(line.begin() + static_cast<std::ptrdiff_t>(colon), line.end(), [](char c) {
    return c == '\t' || (c >= ' ' && c != 127) || static_cast<unsigned char>(c) >= 0x80;
  });
}

std::string_view trimmed(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t");
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(" \t") - start + 1);
}

bool same_place(const ConnectTarget& a, std::string_view host_header) {
  auto b = parse_host_port(host_header);
  // Clients may leave the port out.
  if (!b) b = parse_host_port(fmt::format("{}:{}", host_header, a.port));
  return b && b->name == a.name && b->address == a.address && b->port == a.port;
}

} // namespace

std::expected<ConnectTarget, HttpRefusal> parse_host_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad("the target of CONNECT must be host:port");
  std::string_view host = text.substr(0, colon);
  const auto port = read_port(text.substr(colon + 1));
  if (!port) return bad("the port of CONNECT must be a number from 1 to 65535");
  ConnectTarget target;
  target.port = *port;
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    target.address = parse_address(host, *port);
    if (!target.address || !target.address->v6) return bad("not an IPv6 address in brackets");
    return target;
  }
  if (const auto address = parse_address(host, *port); address && !address->v6) {
    target.address = address;
    return target;
  }
  const auto name = read_name(host);
  if (!name) return bad("not a host name (letters, digits, '-' and dots; xn-- for others)");
  target.name = *name;
  return target;
}

std::expected<ConnectTarget, HttpRefusal> parse_connect_request(std::string_view head) {
  if (!head.ends_with("\r\n\r\n")) return bad("the request has no end");
  head.remove_suffix(2);
  const std::size_t line_end = head.find("\r\n");
  const std::string_view line = head.substr(0, line_end);
  const std::size_t first = line.find(' ');
  const std::size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos || line.find(' ', second + 1) != std::string_view::npos) {
    return bad("not an HTTP request line");
  }
  const std::string_view method = line.substr(0, first);
  const std::string_view version = line.substr(second + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return bad("not HTTP/1.1 or HTTP/1.0");
  if (method != "CONNECT") {
    return std::unexpected(
        HttpRefusal{403, "this proxy only opens HTTPS connections (CONNECT host:443)"});
  }
  auto target = parse_host_port(line.substr(first + 1, second - first - 1));
  if (!target) return target;

  std::string_view rest = head.substr(line_end + 2);
  bool host_seen = false;
  while (!rest.empty()) {
    const std::size_t end = rest.find("\r\n");
    if (end == std::string_view::npos) return bad("a header line has no end");
    const std::string_view header = rest.substr(0, end);
    rest.remove_prefix(end + 2);
    if (!is_header(header)) return bad("not a header line");
    const std::size_t colon = header.find(':');
    const std::string name = lower(header.substr(0, colon));
    if (name == "host") {
      if (host_seen) return bad("two Host headers");
      host_seen = true;
      if (!same_place(*target, trimmed(header.substr(colon + 1)))) {
        return bad("the Host header names another place than the request line");
      }
    }
    // A body would be read as the beginning of the tunnel by one side only.
    if (name == "transfer-encoding") return bad("a CONNECT request has no body");
    if (name == "content-length" && trimmed(header.substr(colon + 1)) != "0") {
      return bad("a CONNECT request has no body");
    }
  }
  return target;
}

} // namespace nd7
