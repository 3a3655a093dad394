#include "core/dns_message.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace nd7 {
namespace {

using std::string_literals::operator""s;

DnsQuery query_for(std::string_view name, std::uint16_t type = dns::kA) {
  auto query = make_dns_query(name, type);
  EXPECT_TRUE(query) << name;
  query->id = 0x1234;
  return *query;
}

std::string wire_query(std::string_view name, std::uint16_t type = dns::kA) {
  return make_dns_question(0x1234, query_for(name, type));
}

DnsRecord a_record(std::string name, const char* address, std::uint32_t ttl = 60) {
  const Address a = *parse_address(address);
  return {std::move(name), a.v6 ? dns::kAaaa : dns::kA, ttl, {}, {a}, 0};
}

DnsRecord cname(std::string name, std::string target) {
  return {std::move(name), dns::kCname, 60, std::move(target), {}, 0};
}

std::string record(const std::string& name, unsigned type, unsigned ttl, const std::string& data) {
  std::string r = name;
  r += static_cast<char>(type >> 8);
  r += static_cast<char>(type & 0xff);
  r += "\0\1"s;
  for (const int shift : {24, 16, 8, 0}) r += static_cast<char>(ttl >> shift & 0xff);
  r += static_cast<char>(data.size() >> 8);
  r += static_cast<char>(data.size() & 0xff);
  return r + data;
}

// An answer with one raw record, its owner a pointer to the question.
std::string raw_answer(std::string_view name, std::uint16_t type, const std::string& data,
                       unsigned ttl = 60) {
  std::string m = make_dns_answer(query_for(name, type), dns::kNoError);
  m[7] = 1;
  return m + record("\xc0\x0c"s, type, ttl, data);
}

TEST(DnsQuery, ReadsAnOrdinaryQuestion) {
  const auto query = parse_dns_query(wire_query("Example.COM", dns::kAaaa));
  ASSERT_TRUE(query);
  EXPECT_EQ(query->id, 0x1234);
  EXPECT_EQ(query->name, "example.com");
  EXPECT_EQ(query->type, dns::kAaaa);
  EXPECT_EQ(query->klass, 1);
  EXPECT_EQ(query->question, "\7Example\3COM\0\0\x1c\0\1"s);
  EXPECT_TRUE(query->recursion_desired);
  EXPECT_FALSE(query->edns);
  EXPECT_EQ(query->udp_bytes, kDnsUdpBytesMin);
}

TEST(DnsQuery, ReadsEdnsWithinBounds) {
  std::string message = wire_query("a.test");
  message[11] = 1;
  const auto opt = [&](const char* size) {
    return parse_dns_query(message + "\0\0\x29"s + std::string(size, 2) + "\0\0\x80\0\0\0"s);
  };
  ASSERT_TRUE(opt("\x10\x00"));
  EXPECT_TRUE(opt("\x10\x00")->edns);
  EXPECT_TRUE(opt("\x10\x00")->dnssec_ok);
  EXPECT_EQ(opt("\x10\x00")->udp_bytes, kDnsUdpBytesMax);
  EXPECT_EQ(opt("\x00\x10")->udp_bytes, kDnsUdpBytesMin);
}

TEST(DnsQuery, NamesMayHoldAnyBytesAndComeOutPrintable) {
  std::string message = wire_query("abcd.test");
  message.replace(13, 4, "\0.\xff\n"s);
  const auto query = parse_dns_query(message);
  ASSERT_TRUE(query);
  EXPECT_EQ(query->name, "\\000\\.\\255\\010.test");
}

TEST(DnsQuery, RefusesTheMalformedWithFormErr) {
  const std::string good = wire_query("example.com");
  const auto refused = [](const std::string& m) {
    const auto query = parse_dns_query(m);
    return !query && !query.error().silent && query.error().rcode == dns::kFormErr;
  };
  EXPECT_TRUE(parse_dns_query(good));
  EXPECT_TRUE(refused(good + "x")) << "trailing bytes";
  for (std::size_t cut = 12; cut < good.size(); ++cut) EXPECT_TRUE(refused(good.substr(0, cut)));
  std::string m = good;
  m[5] = 2;
  EXPECT_TRUE(refused(m)) << "two questions announced";
  m = good;
  m[5] = 0;
  EXPECT_TRUE(refused(m)) << "no question";
  m = good;
  m[7] = 1;
  EXPECT_TRUE(refused(m + record("\xc0\x0c"s, 1, 1, "abcd"))) << "answers in a question";
  m = good;
  m.replace(12, 2, "\xc0\x0c"s);
  EXPECT_TRUE(refused(m)) << "a name that points at itself";
}

TEST(DnsQuery, IsSilentToAnswersAndCrumbs) {
  std::string m = wire_query("example.com");
  m[2] = static_cast<char>(m[2] | 0x80);
  ASSERT_FALSE(parse_dns_query(m));
  EXPECT_TRUE(parse_dns_query(m).error().silent);
  EXPECT_TRUE(parse_dns_query("short").error().silent);
  EXPECT_TRUE(parse_dns_query("").error().silent);
}

TEST(DnsQuery, OtherOpcodesAreNotImplemented) {
  std::string m = wire_query("example.com");
  m[2] = 0x28; // UPDATE
  ASSERT_FALSE(parse_dns_query(m));
  EXPECT_EQ(parse_dns_query(m).error().rcode, dns::kNotImp);
}

TEST(DnsAnswer, RoundTripsItsOwnRecords) {
  const DnsQuery query = query_for("www.example.com");
  const auto answer = parse_dns_answer(make_dns_answer(
      query, dns::kNoError,
      {cname("www.example.com", "host.example.net"), a_record("host.example.net", "93.184.216.34"),
       a_record("host.example.net", "2606:2800::1", 5)}));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->id, 0x1234);
  EXPECT_EQ(answer->question, query.question);
  ASSERT_EQ(answer->answers.size(), 3U);
  EXPECT_EQ(answer->answers[0].target, "host.example.net");
  EXPECT_EQ(address_text(answer->answers[1].addresses.at(0)), "93.184.216.34");
  EXPECT_EQ(address_text(answer->answers[2].addresses.at(0)), "2606:2800::1");
  EXPECT_EQ(answer->answers[2].ttl, 5U);
}

TEST(DnsAnswer, ReadsTheHintsOfHttpsRecords) {
  const std::string data = "\0\1\0"s + "\0\1\0\3\2h2"s + "\0\4\0\x08\x0a\0\0\1\x5d\xb8\xd8\x22"s +
                           "\0\6\0\x10"s + std::string(15, '\0') + "\1"s;
  const auto answer = parse_dns_answer(raw_answer("example.com", dns::kHttps, data));
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->answers.at(0).addresses.size(), 3U);
  EXPECT_EQ(address_text(answer->answers[0].addresses[0]), "10.0.0.1");
  EXPECT_EQ(address_text(answer->answers[0].addresses[2]), "::1");
  EXPECT_FALSE(parse_dns_answer(raw_answer("example.com", dns::kHttps, "\0\1\0\0\4\0\3abc"s)))
      << "a hint of three bytes";
  EXPECT_FALSE(parse_dns_answer(raw_answer("example.com", dns::kHttps, "\0\1\0\0\4\0\x40"s)))
      << "a parameter longer than the record";
}

TEST(DnsAnswer, RefusesRecordsOfTheWrongSize) {
  EXPECT_TRUE(parse_dns_answer(raw_answer("example.com", dns::kA, "abcd")));
  EXPECT_FALSE(parse_dns_answer(raw_answer("example.com", dns::kA, "abcde")));
  EXPECT_FALSE(parse_dns_answer(raw_answer("example.com", dns::kAaaa, "abcd")));
  EXPECT_FALSE(parse_dns_answer(raw_answer("example.com", dns::kA, "abcd") + "x"));
}

TEST(DnsAnswer, FitsADatagramOrSaysTruncated) {
  const DnsQuery query = [] {
    DnsQuery q = query_for("example.com");
    q.udp_bytes = kDnsUdpBytesMin;
    return q;
  }();
  std::vector<DnsRecord> many(30, a_record("example.com", "1.2.3.4"));
  const std::string whole = make_dns_answer(query, dns::kNoError, many);
  ASSERT_GT(whole.size(), 512U);
  const std::string cut = fit_datagram(query, whole);
  EXPECT_LE(cut.size(), 512U);
  const auto parsed = parse_dns_answer(cut);
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(parsed->truncated);
  many.resize(2);
  const std::string small = make_dns_answer(query, dns::kNoError, many);
  EXPECT_EQ(fit_datagram(query, small), small);
}

TEST(DnsAnswer, AdaptsToTheAsker) {
  const DnsQuery first = query_for("example.com");
  const std::string kept =
      make_dns_answer(first, dns::kNoError, {a_record("example.com", "1.2.3.4", 100)});
  const auto parsed = parse_dns_answer(kept);
  ASSERT_TRUE(parsed);
  DnsQuery second = query_for("eXaMPLe.com");
  second.id = 7;
  const auto adapted = parse_dns_answer(adapt_dns_answer(kept, *parsed, second, 30));
  ASSERT_TRUE(adapted);
  EXPECT_EQ(adapted->id, 7);
  EXPECT_EQ(adapted->question, second.question);
  EXPECT_EQ(adapted->answers.at(0).ttl, 70U);
  EXPECT_EQ(parse_dns_answer(adapt_dns_answer(kept, *parsed, second, 500))->answers.at(0).ttl, 0U);
}

TEST(DnsAnswer, ExtendedErrorsGoOnlyToThoseWhoUseEdns) {
  DnsQuery query = query_for("example.com");
  const DnsNote note{dns::kBlocked, "points at 10.0.0.1"};
  EXPECT_EQ(make_dns_answer(query, dns::kNoError, {}, note).find("points"), std::string::npos);
  query.edns = true;
  const std::string told = make_dns_answer(query, dns::kNoError, {}, note);
  EXPECT_NE(told.find("points at 10.0.0.1"), std::string::npos);
  EXPECT_TRUE(parse_dns_answer(told));
}

TEST(DnsName, PatternsMatchBelowNotItself) {
  EXPECT_TRUE(dns_name_matches("example.com", "EXAMPLE.com."));
  EXPECT_TRUE(dns_name_matches("*.example.com", "a.b.example.com"));
  EXPECT_FALSE(dns_name_matches("*.example.com", "example.com"));
  EXPECT_FALSE(dns_name_matches("*.example.com", "notexample.com"));
  EXPECT_FALSE(dns_name_matches("example.com", "a.example.com"));
  EXPECT_FALSE(dns_name_matches("*.example.com", ".example.com"));
}

TEST(DnsName, TooLongForTheWireIsNoQuery) {
  EXPECT_FALSE(make_dns_query(std::string(64, 'a') + ".test", dns::kA));
  EXPECT_TRUE(make_dns_query(std::string(63, 'a') + ".test", dns::kA));
  std::string longest;
  for (int i = 0; i < 127; ++i) longest += "a.";
  EXPECT_TRUE(make_dns_query(longest, dns::kA));
  EXPECT_FALSE(make_dns_query(longest + "a", dns::kA));
  EXPECT_FALSE(make_dns_query("evil.test\0.example.com"s, dns::kA));
}

RC_GTEST_PROP(DnsMessage, AnyBytesAreReadOrRefusedAndNeverMore, ()) {
  const auto bytes = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
  (void)parse_dns_query(bytes);
  (void)parse_dns_answer(bytes);
}

// Damage to a real message finds more than noise does.
RC_GTEST_PROP(DnsMessage, DamagedAnswersAreReadOrRefused, ()) {
  std::string m =
      make_dns_answer(query_for("www.example.com"), dns::kNoError,
                      {cname("www.example.com", "x.test"), a_record("x.test", "1.2.3.4")});
  m += raw_answer("example.com", dns::kHttps, "\0\1\0\0\4\0\4abcd"s).substr(29);
  const auto hits = *rc::gen::inRange(1, 5);
  for (int i = 0; i < hits; ++i) {
    m[*rc::gen::inRange<std::size_t>(0, m.size())] = *rc::gen::arbitrary<char>();
  }
  m.resize(*rc::gen::inRange<std::size_t>(m.size() / 2, m.size() + 1));
  if (const auto answer = parse_dns_answer(m)) {
    for (const DnsRecord& r : answer->answers) {
      for (const char c : r.name + r.target) RC_ASSERT(c > ' ' && c < 127);
    }
    const DnsQuery query = query_for("www.example.com");
    const std::string adapted = adapt_dns_answer(m, *answer, query, 1);
    RC_ASSERT(adapted.size() == m.size());
  }
}

RC_GTEST_PROP(DnsMessage, EveryNameOfPlainLabelsSurvives, ()) {
  const auto labels = *rc::gen::container<std::vector<std::string>>(
      *rc::gen::inRange<std::size_t>(1, 5),
      rc::gen::container<std::string>(*rc::gen::inRange<std::size_t>(1, 20),
                                      rc::gen::inRange('a', 'z')));
  std::string name;
  for (const auto& label : labels) name += (name.empty() ? "" : ".") + label;
  const auto query = parse_dns_query(wire_query(name));
  RC_ASSERT(query.has_value());
  RC_ASSERT(query->name == name);
}

} // namespace
} // namespace nd7
