#include "net/connect_request.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace nd7 {
namespace {

using namespace std::string_literals;

std::string request(const std::string& target, const std::string& headers = "") {
  return "CONNECT " + target + " HTTP/1.1\r\n" + headers + "\r\n";
}

TEST(ConnectRequest, ReadsWhatClientsSend) {
  const auto a = parse_connect_request(
      request("Example.COM:443", "Host: example.com:443\r\nUser-Agent: curl/7.88.1\r\n"
                                 "Proxy-Connection: Keep-Alive\r\n"));
  ASSERT_TRUE(a) << a.error().sentence;
  EXPECT_EQ(a->name, "example.com");
  EXPECT_EQ(a->port, 443);
  EXPECT_FALSE(a->address);
  EXPECT_EQ(parse_connect_request(request("example.com.:443"))->name, "example.com");
  EXPECT_EQ(parse_connect_request(request("xn--bcher-kva.example:443"))->name,
            "xn--bcher-kva.example");
  EXPECT_EQ(parse_connect_request(request("my_host.example:8443"))->port, 8443);
  EXPECT_TRUE(parse_connect_request(request("example.com:443", "Host: example.com\r\n")));
  const auto six = parse_connect_request(request("[2606:2800::1]:443"));
  ASSERT_TRUE(six && six->address);
  EXPECT_EQ(endpoint_text(*six->address), "[2606:2800::1]:443");
  EXPECT_EQ(address_text(*parse_connect_request(request("1.2.3.4:443"))->address), "1.2.3.4");
}

class Refused : public testing::TestWithParam<std::string> {};

TEST_P(Refused, BecauseTwoParsersCouldDiffer) {
  const auto got = parse_connect_request(request(GetParam()));
  ASSERT_FALSE(got) << GetParam();
  EXPECT_EQ(got.error().status, 400);
}

INSTANTIATE_TEST_SUITE_P(
    Targets, Refused,
    testing::Values("evil.test\0.allowed.com:443"s, "evil.test%00.allowed.com:443"s, "a%2eb:443"s,
                    "evil.test allowed.com:443"s, "evil.test\tx:443"s, "user@evil.test:443"s,
                    "user:pw@evil.test:443"s, "evil.test#.allowed.com:443"s, "evil.test/x:443"s,
                    "evil.test\\.allowed.com:443"s,
                    "b\xc3\xbc"
                    "cher.example:443"s,
                    "example.com"s, "example.com:"s, ":443"s, "example.com:0"s, "example.com:0443"s,
                    "example.com:+443"s, "example.com:443 "s, "example.com:65536"s,
                    "example.com:99999999"s, "example.com:4x3"s, "example.com:443:443"s, ".:443"s,
                    "a..b:443"s, ".a:443"s, "example.com..:443"s, "127.1:443"s, "127.0.0.1.:443"s,
                    "0x7f.0.0.1:443"s, "0177.0.0.1:443"s, "2130706433:443"s, "0x7f000001:443"s,
                    "1.2.3.4.5:443"s, "foo.0x1:443"s, "::1:443"s, "[::1:443"s, "[1.2.3.4]:443"s,
                    "[fe80::1%25lo]:443"s, "[]:443"s, "http://example.com:443"s,
                    std::string(64, 'a') + ".com:443", std::string(254, 'a') + ":443"));

TEST(ConnectRequest, RefusesOtherMethodsWithASentence) {
  const auto got = parse_connect_request("GET http://example.com/ HTTP/1.1\r\n\r\n");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().status, 403);
  EXPECT_NE(got.error().sentence.find("CONNECT"), std::string::npos);
  EXPECT_EQ(parse_connect_request("connect a.test:443 HTTP/1.1\r\n\r\n").error().status, 403);
}

TEST(ConnectRequest, RefusesHeadsThatCouldBeReadTwoWays) {
  const auto refused = [](const std::string& head) { return !parse_connect_request(head); };
  EXPECT_FALSE(refused(request("a.test:443")));
  EXPECT_TRUE(refused("CONNECT a.test:443 HTTP/1.1\n\n"));
  EXPECT_TRUE(refused("CONNECT a.test:443 HTTP/2.0\r\n\r\n"));
  EXPECT_TRUE(refused("CONNECT  a.test:443 HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(refused("CONNECT a.test:443\r\n\r\n"));
  EXPECT_TRUE(refused(""));
  EXPECT_TRUE(refused("\r\n\r\n"));
  EXPECT_TRUE(refused(request("a.test:443", "Host: b.test:443\r\n")));
  EXPECT_TRUE(refused(request("a.test:443", "Host: a.test:444\r\n")));
  EXPECT_TRUE(refused(request("a.test:443", "Host: a.test\r\nHost: a.test\r\n")));
  EXPECT_TRUE(refused(request("a.test:443", " folded: x\r\n")));
  EXPECT_TRUE(refused(request("a.test:443", "No colon\r\n")));
  EXPECT_TRUE(refused(request("a.test:443", "X : y\r\n")));
  EXPECT_TRUE(refused(request("a.test:443", "X: a\nHost: b.test\r\n")));
  EXPECT_TRUE(refused(request("a.test:443", "X: a\0b\r\n"s)));
  EXPECT_TRUE(refused(request("a.test:443", "Content-Length: 5\r\n")));
  EXPECT_TRUE(refused(request("a.test:443", "Transfer-Encoding: chunked\r\n")));
}

RC_GTEST_PROP(ConnectRequest, WhatIsAcceptedHasOnlyPlainBytes, ()) {
  const auto target = *rc::gen::container<std::string>(
      rc::gen::oneOf(rc::gen::elementOf("abcxyz019.-_:[]%@"s), rc::gen::arbitrary<char>()));
  const auto got = parse_connect_request(request(target + ":443"));
  if (!got) return;
  for (const char c : got->name) {
    RC_ASSERT((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.');
  }
  RC_ASSERT(got->name.empty() == got->address.has_value());
  RC_ASSERT(got->name.empty() || !parse_address(got->name));
}

} // namespace
} // namespace nd7
