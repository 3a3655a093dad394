// Internet addresses as values, and which kind of place one leads to.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nd7 {

struct Address {
  bool v6 = false;
  std::array<std::uint8_t, 16> bytes{}; // network order; the first four for IPv4
  std::uint16_t port = 0;               // host order
  friend auto operator<=>(const Address&, const Address&) = default;
};

// Where an address leads. Addresses that carry another inside (::ffff:a.b.c.d, 64:ff9b::/96,
// 2002::/16) are classified by what they contain (RFC 4291, 6052, 3056; IANA special-purpose
// registries).
enum class AddressClass : std::uint8_t {
  public_host,
  loopback,      // 127/8, ::1
  unspecified,   // 0.0.0.0, :: (Linux connects these to loopback)
  link_local,    // 169.254/16, fe80::/10
  metadata,      // cloud metadata services: 169.254.169.254, 169.254.170.2, fd00:ec2::254, ...
  multicast,     // and broadcast
  private_range, // RFC 1918, fc00::/7, 100.64/10
  reserved,      // documentation, benchmarking, 0/8, 240/4, ...
};

AddressClass classify(const Address& address);
const char* class_name(AddressClass c); // "private range", for sentences
// "93.184.216.34", "2606:2800::1" without the port.
std::string address_text(const Address& address);
// "93.184.216.34:443", "[2606:2800::1]:443".
std::string endpoint_text(const Address& address);
// The strict spellings of inet_pton(3): no zone, no brackets, no octal, hexadecimal or short forms
// of IPv4, no NUL or space anywhere.
std::optional<Address> parse_address(std::string_view text, std::uint16_t port = 0);

// ::ffff:a.b.c.d as a.b.c.d; anything else unchanged.
Address unmapped(const Address& address);
// The IPv4 address inside a mapped (RFC 4291), NAT64 (RFC 6052) or 6to4 (RFC 3056) one.
std::optional<Address> carried_ipv4(const Address& address);

struct Prefix {
  Address base;
  unsigned bits = 0;
};
// "10.0.0.0/8", "fe80::/10"; an address alone is a prefix of all its bits.
std::optional<Prefix> parse_prefix(std::string_view text);
bool contains(const Prefix& prefix, const Address& address); // mapped IPv4 compares as IPv4
// In any of them, itself or by the IPv4 address it carries.
bool contains(const std::vector<Prefix>& prefixes, const Address& address);

} // namespace nd7
