#include "core/address.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace nd7 {
namespace {

using enum AddressClass;

struct Row {
  const char* text;
  AddressClass leads_to;
};

class Classify : public testing::TestWithParam<Row> {};

TEST_P(Classify, LeadsWhereTheRegistriesSay) {
  const auto address = parse_address(GetParam().text);
  ASSERT_TRUE(address) << GetParam().text;
  EXPECT_EQ(classify(*address), GetParam().leads_to)
      << GetParam().text << " is a " << class_name(classify(*address));
}

// Both edges of each range, so that a wrong mask shows.
INSTANTIATE_TEST_SUITE_P(
    Ranges, Classify,
    testing::Values(
        Row{"93.184.216.34", public_host}, Row{"1.1.1.1", public_host}, Row{"8.8.8.8", public_host},
        Row{"0.0.0.0", unspecified}, Row{"0.0.0.1", reserved}, Row{"0.255.255.255", reserved},
        Row{"1.0.0.0", public_host}, Row{"9.255.255.255", public_host},
        Row{"10.0.0.0", private_range}, Row{"10.255.255.255", private_range},
        Row{"11.0.0.0", public_host}, Row{"100.63.255.255", public_host},
        Row{"100.64.0.0", private_range}, Row{"100.127.255.255", private_range},
        Row{"100.128.0.0", public_host}, Row{"126.255.255.255", public_host},
        Row{"127.0.0.1", loopback}, Row{"127.255.255.255", loopback}, Row{"128.0.0.0", public_host},
        Row{"169.253.255.255", public_host}, Row{"169.254.0.1", link_local},
        Row{"169.254.169.253", link_local}, Row{"169.255.0.0", public_host},
        Row{"172.15.255.255", public_host}, Row{"172.16.0.0", private_range},
        Row{"172.31.255.255", private_range}, Row{"172.32.0.0", public_host},
        Row{"192.0.0.1", reserved}, Row{"192.0.1.0", public_host}, Row{"192.0.2.1", reserved},
        Row{"192.31.196.1", public_host}, Row{"192.88.99.1", reserved},
        Row{"192.167.255.255", public_host}, Row{"192.168.0.0", private_range},
        Row{"192.169.0.0", public_host}, Row{"198.17.255.255", public_host},
        Row{"198.18.0.7", reserved}, Row{"198.19.255.255", reserved},
        Row{"198.20.0.0", public_host}, Row{"198.51.100.9", reserved},
        Row{"203.0.113.255", reserved}, Row{"223.255.255.255", public_host},
        Row{"224.0.0.1", multicast}, Row{"239.255.255.255", multicast}, Row{"240.0.0.0", reserved},
        Row{"255.255.255.254", reserved}, Row{"255.255.255.255", multicast}));

INSTANTIATE_TEST_SUITE_P(
    Ranges6, Classify,
    testing::Values(Row{"::", unspecified}, Row{"::1", loopback}, Row{"::2", reserved},
                    Row{"2606:4700:4700::1111", public_host}, Row{"2a00:1450::1", public_host},
                    Row{"fe80::1", link_local}, Row{"febf::1", link_local},
                    Row{"fec0::1", private_range}, Row{"fc00::1", private_range},
                    Row{"fdff::1", private_range}, Row{"fe00::1", reserved},
                    Row{"ff02::1", multicast}, Row{"ff0e::1", multicast},
                    Row{"2001:db8::1", reserved}, Row{"3fff::1", reserved},
                    Row{"3fff:1000::1", public_host}, Row{"2001::1", reserved}, // Teredo
                    Row{"2001:1ff::1", reserved}, Row{"2001:200::1", public_host},
                    Row{"100::1", reserved}, Row{"5f00::1", reserved}, Row{"4000::1", reserved},
                    Row{"1fff::1", reserved}, Row{"::7f00:1", reserved})); // RFC 4291 2.5.5.1

INSTANTIATE_TEST_SUITE_P(
    Metadata, Classify,
    testing::Values(Row{"169.254.169.254", metadata}, Row{"169.254.170.2", metadata},
                    Row{"169.254.170.23", metadata}, Row{"100.100.100.200", metadata},
                    Row{"192.0.0.192", metadata}, Row{"168.63.129.16", metadata},
                    Row{"fd00:ec2::254", metadata}, Row{"fd20:ce::254", metadata},
                    Row{"fd00:ec2::255", private_range}, Row{"fe80::a9fe:a9fe", metadata},
                    Row{"::ffff:169.254.169.254", metadata}, Row{"::ffff:a9fe:a9fe", metadata},
                    Row{"64:ff9b::169.254.169.254", metadata}, Row{"2002:a9fe:a9fe::1", metadata},
                    Row{"::ffff:100.100.100.200", metadata}));

INSTANTIATE_TEST_SUITE_P(
    Carriers, Classify,
    testing::Values(Row{"::ffff:127.0.0.1", loopback}, Row{"::ffff:0.0.0.0", unspecified},
                    Row{"::ffff:10.1.2.3", private_range}, Row{"::ffff:93.184.216.34", public_host},
                    Row{"64:ff9b::10.1.2.3", private_range}, Row{"64:ff9b::127.0.0.1", loopback},
                    Row{"64:ff9b::93.184.216.34", public_host},
                    Row{"64:ff9b:0:1::5db8:d822", reserved}, // outside the /96
                    Row{"64:ff9b:1::5db8:d822", private_range}, Row{"2002:7f00:1::", loopback},
                    Row{"2002:a00:1::5", private_range}, Row{"2002:5db8:d822::1", public_host}));

TEST(Address, ParsesOnlyTheStrictSpellings) {
  for (const char* text :
       {"", "1", "127.1", "0x7f.0.0.1", "0177.0.0.1", "2130706433", "1.2.3.4.5", "1.2.3.256",
        " 1.2.3.4", "1.2.3.4 ", "1.2.3.4\n", "[::1]", "fe80::1%lo", "::1::", "1:2:3:4:5:6:7:8:9",
        "example.com", "::ffff:1.2.3.256", "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000"}) {
    EXPECT_FALSE(parse_address(text)) << text;
  }
  using std::string_view_literals::operator""sv;
  EXPECT_FALSE(parse_address("1.2.3.4\0"sv));
  EXPECT_FALSE(parse_address("1.2.3.4\0.evil.test"sv));
}

TEST(Address, TextIsCanonical) {
  EXPECT_EQ(address_text(*parse_address("2606:2800:0:0:0:0:0:1")), "2606:2800::1");
  EXPECT_EQ(address_text(*parse_address("93.184.216.34", 443)), "93.184.216.34");
  EXPECT_EQ(endpoint_text(*parse_address("2606:2800::1", 443)), "[2606:2800::1]:443");
  EXPECT_EQ(endpoint_text(*parse_address("1.2.3.4", 80)), "1.2.3.4:80");
}

TEST(Prefix, EdgesOfARange) {
  const auto prefix = *parse_prefix("192.168.4.0/22");
  EXPECT_TRUE(contains(prefix, *parse_address("192.168.7.255")));
  EXPECT_FALSE(contains(prefix, *parse_address("192.168.8.0")));
  EXPECT_TRUE(contains(prefix, *parse_address("::ffff:192.168.4.1")));
  EXPECT_FALSE(contains(prefix, *parse_address("64:ff9b::192.168.4.1")));
  EXPECT_TRUE(contains(std::vector{prefix}, *parse_address("64:ff9b::192.168.4.1")));
  EXPECT_TRUE(contains(std::vector{prefix}, *parse_address("2002:c0a8:401::1")));
  EXPECT_FALSE(contains(std::vector<Prefix>{}, *parse_address("192.168.4.1")));
  EXPECT_TRUE(contains(*parse_prefix("::ffff:10.0.0.0/104"), *parse_address("10.9.9.9")));
  EXPECT_TRUE(contains(*parse_prefix("0.0.0.0/0"), *parse_address("8.8.8.8")));
  EXPECT_FALSE(contains(*parse_prefix("0.0.0.0/0"), *parse_address("2606::1")));
  EXPECT_TRUE(contains(*parse_prefix("2a00:1:2:3::1"), *parse_address("2a00:1:2:3::1")));
  EXPECT_FALSE(contains(*parse_prefix("2a00:1:2:3::1"), *parse_address("2a00:1:2:3::2")));
  for (const char* bad : {"1.2.3.4/33", "::/129", "1.2.3.4/", "1.2.3.4/-1", "1.2.3.4/08x", "/8"}) {
    EXPECT_FALSE(parse_prefix(bad)) << bad;
  }
}

Address any_address() {
  Address a;
  a.v6 = *rc::gen::arbitrary<bool>();
  for (std::size_t i = 0; i < (a.v6 ? 16U : 4U); ++i)
    a.bytes[i] = *rc::gen::arbitrary<std::uint8_t>();
  return a;
}

RC_GTEST_PROP(Address, TextRoundTrips, ()) {
  const Address a = any_address();
  const auto back = parse_address(address_text(a));
  RC_ASSERT(back.has_value());
  RC_ASSERT(*back == a);
}

RC_GTEST_PROP(Address, MappingNeverChangesTheClass, ()) {
  Address v4 = any_address();
  v4.v6 = false;
  std::fill(v4.bytes.begin() + 4, v4.bytes.end(), std::uint8_t{0});
  for (const char* carrier : {"::ffff:", "64:ff9b::"}) {
    const auto carried = parse_address(carrier + address_text(v4));
    RC_ASSERT(carried.has_value());
    RC_ASSERT(classify(*carried) == classify(v4));
  }
}

RC_GTEST_PROP(Prefix, AnAddressIsInEveryPrefixOfItselfAndFlippingABitLeavesIt, ()) {
  const Address a = any_address();
  const unsigned all = a.v6 ? 128 : 32;
  const unsigned bits = *rc::gen::inRange(0U, all + 1);
  RC_ASSERT(contains(Prefix{a, bits}, a));
  if (bits == 0 || unmapped(a) != a) return;
  Address other = a;
  const unsigned at = *rc::gen::inRange(0U, bits);
  other.bytes[at / 8] = static_cast<std::uint8_t>(other.bytes[at / 8] ^ (0x80U >> (at % 8)));
  RC_ASSERT(!contains(Prefix{a, bits}, other));
}

RC_GTEST_PROP(Address, OnlyGlobalUnicastIsPublic, ()) {
  const Address a = any_address();
  if (a.v6 && classify(a) == public_host && !carried_ipv4(a))
    RC_ASSERT((a.bytes[0] & 0xe0) == 0x20);
}

} // namespace
} // namespace nd7
