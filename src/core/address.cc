#include "core/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

namespace nd7 {
namespace {

using Bytes = std::array<std::uint8_t, 16>;

struct Row4 {
  std::array<std::uint8_t, 4> base;
  unsigned bits;
  AddressClass leads_to;
};

struct Row6 {
  std::array<std::uint16_t, 8> base; // groups, as written
  unsigned bits;
  AddressClass leads_to;
};

using enum AddressClass;

// First match wins; what no row names is public. Sources: IANA IPv4 special-purpose registry and
// the documentation of the clouds. 192.31.196/24, 192.52.193/24 and 192.175.48/24 (AS112, AMT) are
// in the registry too, but globally reachable, so they have no row.
constexpr Row4 kRows4[] = {
    {{0, 0, 0, 0}, 32, unspecified},       // Linux connects it to loopback
    {{255, 255, 255, 255}, 32, multicast}, // limited broadcast
    {{169, 254, 169, 254}, 32, metadata},  // AWS, GCP, Azure, OCI, OpenStack, ...
    {{169, 254, 170, 2}, 32, metadata},    // AWS ECS task credentials
    {{169, 254, 170, 23}, 32, metadata},   // AWS EKS pod identity
    {{169, 254, 42, 42}, 32, metadata},    // Scaleway
    {{169, 254, 0, 23}, 32, metadata},     // Tencent
    {{100, 100, 100, 200}, 32, metadata},  // Alibaba
    {{192, 0, 0, 192}, 32, metadata},      // Oracle classic
    {{168, 63, 129, 16}, 32, metadata},    // Azure wire server, a public-looking address
    {{0, 0, 0, 0}, 8, reserved},           // RFC 791 "this network"
    {{10, 0, 0, 0}, 8, private_range},     // RFC 1918
    {{100, 64, 0, 0}, 10, private_range},  // RFC 6598 shared: carriers, VPNs, clusters
    {{127, 0, 0, 0}, 8, loopback},         // RFC 1122
    {{169, 254, 0, 0}, 16, link_local},    // RFC 3927
    {{172, 16, 0, 0}, 12, private_range},  // RFC 1918
    {{192, 0, 0, 0}, 24, reserved},        // RFC 6890 protocol assignments
    {{192, 0, 2, 0}, 24, reserved},        // RFC 5737 documentation
    {{192, 88, 99, 0}, 24, reserved},      // RFC 7526 6to4 relay, deprecated
    {{192, 168, 0, 0}, 16, private_range}, // RFC 1918
    {{198, 18, 0, 0}, 15, reserved},       // RFC 2544 benchmarking
    {{198, 51, 100, 0}, 24, reserved},     // RFC 5737 documentation
    {{203, 0, 113, 0}, 24, reserved},      // RFC 5737 documentation
    {{224, 0, 0, 0}, 4, multicast},        // RFC 5771
    {{240, 0, 0, 0}, 4, reserved},         // RFC 1112
};

// The same for IPv6, after addresses that carry an IPv4 one were unwrapped. Only 2000::/3 is
// global unicast (RFC 4291 2.4), so the last row turns the default round.
constexpr Row6 kRows6[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0}, 128, unspecified},
    {{0, 0, 0, 0, 0, 0, 0, 1}, 128, loopback},
    {{0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254}, 128, metadata},   // AWS
    {{0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23}, 128, metadata},    // AWS EKS pod identity
    {{0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254}, 128, metadata},    // GCP
    {{0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42}, 128, metadata},     // Scaleway
    {{0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe}, 128, metadata}, // OpenStack
    {{0x64, 0xff9b, 1, 0, 0, 0, 0, 0}, 48, private_range},    // RFC 8215 local NAT64
    {{0x2001, 0, 0, 0, 0, 0, 0, 0}, 23, reserved},            // RFC 2928; Teredo, ORCHID, ...
    {{0x2001, 0xdb8, 0, 0, 0, 0, 0, 0}, 32, reserved},        // RFC 3849 documentation
    {{0x3fff, 0, 0, 0, 0, 0, 0, 0}, 20, reserved},            // RFC 9637 documentation
    {{0xfc00, 0, 0, 0, 0, 0, 0, 0}, 7, private_range},        // RFC 4193
    {{0xfe80, 0, 0, 0, 0, 0, 0, 0}, 10, link_local},          // RFC 4291
    {{0xfec0, 0, 0, 0, 0, 0, 0, 0}, 10, private_range},       // RFC 3879, once site-local
    {{0xff00, 0, 0, 0, 0, 0, 0, 0}, 8, multicast},            // RFC 4291
    {{0x2000, 0, 0, 0, 0, 0, 0, 0}, 3, public_host},          // global unicast
    {{0, 0, 0, 0, 0, 0, 0, 0}, 0, reserved},                  // all the rest
};

bool same_bits(const std::uint8_t* a, const std::uint8_t* b, unsigned bits) {
  if (std::memcmp(a, b, bits / 8) != 0) return false;
  const unsigned rest = bits % 8;
  if (rest == 0) return true;
  return ((a[bits / 8] ^ b[bits / 8]) >> (8 - rest)) == 0;
}

constexpr Bytes kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr Bytes kNat64 = {0, 0x64, 0xff, 0x9b};
constexpr Bytes kSixToFour = {0x20, 0x02};

Address ipv4_at(const Address& from, std::size_t offset) {
  Address result;
  result.port = from.port;
  std::copy_n(from.bytes.begin() + static_cast<std::ptrdiff_t>(offset), 4, result.bytes.begin());
  return result;
}

AddressClass classify4(const Address& address) {
  for (const Row4& row : kRows4) {
    if (same_bits(address.bytes.data(), row.base.data(), row.bits)) return row.leads_to;
  }
  return public_host;
}

AddressClass classify6(const Address& address) {
  for (const Row6& row : kRows6) {
    Bytes base;
    for (std::size_t i = 0; i < 8; ++i) {
      base[2 * i] = static_cast<std::uint8_t>(row.base[i] >> 8);
      base[2 * i + 1] = static_cast<std::uint8_t>(row.base[i] & 0xff);
    }
    if (same_bits(address.bytes.data(), base.data(), row.bits)) return row.leads_to;
  }
  return reserved;
}

} // namespace

Address unmapped(const Address& address) {
  if (address.v6 && same_bits(address.bytes.data(), kMapped.data(), 96))
    return ipv4_at(address, 12);
  return address;
}

std::optional<Address> carried_ipv4(const Address& address) {
  if (!address.v6) return std::nullopt;
  if (same_bits(address.bytes.data(), kMapped.data(), 96)) return ipv4_at(address, 12);
  if (same_bits(address.bytes.data(), kNat64.data(), 96)) return ipv4_at(address, 12);
  if (same_bits(address.bytes.data(), kSixToFour.data(), 16)) return ipv4_at(address, 2);
  return std::nullopt;
}

AddressClass classify(const Address& address) {
  if (!address.v6) return classify4(address);
  if (const auto inner = carried_ipv4(address)) return classify4(*inner);
  return classify6(address);
}

const char* class_name(AddressClass c) {
  switch (c) {
  case public_host:
    return "public host";
  case loopback:
    return "loopback";
  case unspecified:
    return "unspecified address";
  case link_local:
    return "link-local";
  case metadata:
    return "cloud metadata service";
  case multicast:
    return "multicast";
  case private_range:
    return "private range";
  case reserved:
    return "reserved range";
  }
  return "unknown";
}

std::string address_text(const Address& address) {
  char text[INET6_ADDRSTRLEN];
  const char* ok =
      inet_ntop(address.v6 ? AF_INET6 : AF_INET, address.bytes.data(), text, sizeof text);
  return ok != nullptr ? std::string(text) : std::string();
}

std::string endpoint_text(const Address& address) {
  const std::string host = address_text(address);
  const std::string port = std::to_string(address.port);
  return address.v6 ? "[" + host + "]:" + port : host + ":" + port;
}

std::optional<Address> parse_address(std::string_view text, std::uint16_t port) {
  // inet_pton takes a C string: a NUL inside would hide what follows it.
  if (text.size() >= INET6_ADDRSTRLEN || text.find('\0') != std::string_view::npos)
    return std::nullopt;
  const std::string copy(text);
  Address result;
  result.port = port;
  if (inet_pton(AF_INET, copy.c_str(), result.bytes.data()) == 1) return result;
  result.bytes = {};
  if (inet_pton(AF_INET6, copy.c_str(), result.bytes.data()) != 1) return std::nullopt;
  result.v6 = true;
  return result;
}

std::optional<Prefix> parse_prefix(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto base = parse_address(text.substr(0, slash));
  if (!base) return std::nullopt;
  const unsigned bits_max = base->v6 ? 128 : 32;
  if (slash == std::string_view::npos) return Prefix{*base, bits_max};
  const std::string_view digits = text.substr(slash + 1);
  if (digits.empty() || digits.size() > 3) return std::nullopt;
  unsigned bits = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    bits = bits * 10 + static_cast<unsigned>(c - '0');
  }
  if (bits > bits_max) return std::nullopt;
  return Prefix{*base, bits};
}

bool contains(const Prefix& prefix, const Address& address) {
  Prefix p = prefix;
  if (p.base.v6 && p.bits >= 96 && !unmapped(p.base).v6) {
    p.base = unmapped(p.base);
    p.bits -= 96;
  }
  const Address a = unmapped(address);
  if (p.base.v6 != a.v6 || p.bits > (a.v6 ? 128U : 32U)) return false;
  return same_bits(p.base.bytes.data(), a.bytes.data(), p.bits);
}

bool contains(const std::vector<Prefix>& prefixes, const Address& address) {
  const auto inner = carried_ipv4(address);
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const Prefix& p) {
    return contains(p, address) || (inner && contains(p, *inner));
  });
}

} // namespace nd7
