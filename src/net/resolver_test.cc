#include "net/resolver.h"

#include <gtest/gtest.h>

#include "net/fake_dns.h"

namespace nd7 {
namespace {

using namespace std::string_literals;
using namespace std::chrono_literals;

struct Asked {
  std::optional<DnsAnswer> answer;
  std::string message;
  std::vector<std::string> addresses() const {
    std::vector<std::string> result;
    for (const DnsRecord& r : answer->answers) {
      for (const Address& a : r.addresses) result.push_back(address_text(a));
    }
    return result;
  }
};

class ResolverTest : public testing::Test {
protected:
  using Addresses = std::vector<std::string>;

  void start(std::vector<Address> upstream) {
    settings_.upstream = std::move(upstream);
    settings_.inside = [this]() -> Result<std::shared_ptr<const std::vector<Prefix>>> {
      if (!inside_known_) return fail("not known");
      return std::make_shared<const std::vector<Prefix>>(inside_);
    };
    resolver_.reset();
    loop_ = std::move(*EventLoop::make());
    resolver_ = std::make_unique<Resolver>(
        *loop_, settings_, [this](const ResolveRecord& r) { records_.push_back(r); });
  }
  void start(FakeDns::Script script) {
    fake_ = std::make_unique<FakeDns>(std::move(script));
    start({fake_->address()});
  }

  Asked ask_raw(const std::string& message,
                Resolver::Transport transport = Resolver::Transport::stream,
                std::chrono::milliseconds limit = 5s) {
    Asked asked;
    bool done = false;
    resolver_->serve(message, transport, [&](std::string answer) {
      asked.message = std::move(answer);
      done = true;
    });
    run_until(
        *loop_, [&] { return done; }, limit);
    asked.answer = parse_dns_answer(asked.message);
    return asked;
  }
  Asked ask(const std::string& name, std::uint16_t type = dns::kA, bool edns = false,
            Resolver::Transport transport = Resolver::Transport::stream) {
    DnsQuery query = *make_dns_query(name, type);
    query.edns = edns;
    query.udp_bytes = edns ? kDnsUdpBytesMax : kDnsUdpBytesMin;
    Asked asked = ask_raw(make_dns_question(0x4242, query), transport);
    EXPECT_TRUE(asked.answer) << name;
    if (asked.answer) {
      EXPECT_EQ(asked.answer->id, 0x4242);
      EXPECT_EQ(asked.answer->question, query.question);
    }
    return asked;
  }

  Resolver::Settings settings_;
  std::vector<Prefix> inside_;
  bool inside_known_ = true;
  std::unique_ptr<FakeDns> fake_;
  std::unique_ptr<EventLoop> loop_;
  std::vector<ResolveRecord> records_;
  std::unique_ptr<Resolver> resolver_;
};

TEST_F(ResolverTest, AsksUpstreamRecordsAndPins) {
  start(FakeDns::zone({{"example.com", {"93.184.216.34", "2606:2800::1"}}}));
  EXPECT_EQ(ask("Example.com").addresses(), Addresses{"93.184.216.34"});
  EXPECT_EQ(ask("example.com", dns::kAaaa).addresses(), Addresses{"2606:2800::1"});
  ASSERT_EQ(records_.size(), 2U);
  EXPECT_EQ(records_[0].name, "example.com");
  EXPECT_EQ(records_[0].type, "A");
  EXPECT_EQ(records_[0].answers, Addresses{"93.184.216.34"});
  EXPECT_EQ(records_[0].refused, "");
  EXPECT_EQ(resolver_->name_of(*parse_address("93.184.216.34", 443)), "example.com");
  EXPECT_EQ(resolver_->name_of(*parse_address("::ffff:93.184.216.34")), "example.com");
  EXPECT_EQ(resolver_->name_of(*parse_address("2606:2800::1")), "example.com");
  EXPECT_EQ(resolver_->name_of(*parse_address("1.2.3.4")), "");
}

TEST_F(ResolverTest, AnAddressWithSeveralNamesKeepsThem) {
  start(FakeDns::zone({{"a.test", {"93.184.216.34"}}, {"b.test", {"93.184.216.34"}}}));
  ask("a.test");
  ask("b.test");
  const Address address = *parse_address("93.184.216.34");
  EXPECT_EQ(resolver_->name_of(address), "b.test");
  EXPECT_EQ(resolver_->names_of(address), (Addresses{"b.test", "a.test"}));
  ask("a.test");
  EXPECT_EQ(resolver_->name_of(address), "a.test");
}

TEST_F(ResolverTest, TheTailOfACnameChainIsPinnedToTheNameAsked) {
  start([](const FakeDns::Question& q) {
    return std::vector{make_dns_answer(q.query, dns::kNoError,
                                       {{"www.test", dns::kCname, 60, "cdn.test", {}, 0},
                                        FakeDns::record("cdn.test", "93.184.216.34")})};
  });
  EXPECT_EQ(ask("www.test").addresses(), Addresses{"93.184.216.34"});
  EXPECT_EQ(resolver_->name_of(*parse_address("93.184.216.34")), "www.test");
}

TEST_F(ResolverTest, AnAliasOfAnInwardNameIsNotGivenOutEither) {
  start([](const FakeDns::Question& q) {
    return std::vector{make_dns_answer(
        q.query, dns::kNoError,
        {{"www.test", dns::kCname, 60, "in.test", {}, 0}, FakeDns::record("in.test", "10.0.0.1")})};
  });
  EXPECT_TRUE(ask("www.test").answer->answers.empty());
}

class PointsInside : public ResolverTest, public testing::WithParamInterface<const char*> {};

TEST_P(PointsInside, IsNotGivenOut) {
  start(FakeDns::zone({{"evil.test", {GetParam()}}}));
  const auto type = parse_address(GetParam())->v6 ? dns::kAaaa : dns::kA;
  const Asked asked = ask("evil.test", type, true);
  EXPECT_EQ(asked.answer->rcode, dns::kNoError);
  EXPECT_TRUE(asked.answer->answers.empty());
  EXPECT_NE(asked.message.find("points at"), std::string::npos) << "the extended error";
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_TRUE(records_[0].answers.empty());
  EXPECT_NE(records_[0].refused.find(address_text(*parse_address(GetParam()))), std::string::npos);
  EXPECT_EQ(resolver_->name_of(*parse_address(GetParam())), "");
}

INSTANTIATE_TEST_SUITE_P(Addresses, PointsInside,
                         testing::Values("127.0.0.1", "10.0.0.1", "192.168.1.1", "169.254.169.254",
                                         "0.0.0.0", "100.64.0.1", "224.0.0.1", "::1", "fe80::1",
                                         "fd00:ec2::254", "::ffff:127.0.0.1", "64:ff9b::10.0.0.1",
                                         "2002:7f00:1::1", "2001:db8::1"));

TEST_F(ResolverTest, ANetworkOfThisMachineIsInsideAlthoughPublic) {
  inside_ = {*parse_prefix("93.184.216.0/24")};
  start(FakeDns::zone({{"neighbour.test", {"93.184.216.34", "8.8.8.8"}}}));
  EXPECT_EQ(ask("neighbour.test").addresses(), Addresses{"8.8.8.8"});
  EXPECT_NE(records_.at(0).refused.find("network of this machine"), std::string::npos);
}

TEST_F(ResolverTest, NothingIsGivenOutWhileTheMachinesNetworksAreUnknown) {
  inside_known_ = false;
  start(FakeDns::zone({{"a.test", {"93.184.216.34"}}}));
  EXPECT_TRUE(ask("a.test").addresses().empty());
  EXPECT_NE(records_.at(0).refused.find("cannot be read"), std::string::npos);
}

TEST_F(ResolverTest, OnlyTheInwardRecordsOfAnAnswerAreLeftOut) {
  start(FakeDns::zone({{"mixed.test", {"93.184.216.34", "127.0.0.1"}}}));
  EXPECT_EQ(ask("mixed.test").addresses(), Addresses{"93.184.216.34"});
  EXPECT_NE(records_.at(0).refused.find("127.0.0.1"), std::string::npos);
}

TEST_F(ResolverTest, HintsOfHttpsRecordsAreCheckedToo) {
  start([](const FakeDns::Question& q) {
    std::string m = make_dns_answer(q.query, dns::kNoError);
    m[7] = 1;
    const std::string hint = q.query.name == "bad.test" ? "\x0a\0\0\1"s : "\x5d\xb8\xd8\x22"s;
    m += "\xc0\x0c\0\x41\0\1\0\0\0\x3c\0\x0b\0\1\0\0\4\0\4"s + hint;
    return std::vector{m};
  });
  EXPECT_EQ(ask("good.test", dns::kHttps).addresses(), Addresses{"93.184.216.34"});
  EXPECT_EQ(resolver_->name_of(*parse_address("93.184.216.34")), "good.test");
  EXPECT_TRUE(ask("bad.test", dns::kHttps).answer->answers.empty());
  EXPECT_NE(records_.at(1).refused.find("10.0.0.1"), std::string::npos);
  EXPECT_EQ(records_.at(1).type, "TYPE65");
}

TEST_F(ResolverTest, InwardGlueGoesWithoutARefusal) {
  start([](const FakeDns::Question& q) {
    std::string m =
        make_dns_answer(q.query, dns::kNoError, {FakeDns::record(q.query.name, "8.8.8.8")});
    m[11] = 1; // one additional record, for the root
    m += "\0\0\1\0\1\0\0\0\x3c\0\4\x0a\0\0\1"s;
    return std::vector{m};
  });
  const Asked asked = ask("glue.test");
  EXPECT_EQ(asked.addresses(), Addresses{"8.8.8.8"});
  EXPECT_TRUE(asked.answer->others.empty());
  EXPECT_EQ(records_.at(0).refused, "");
}

TEST_F(ResolverTest, ANameThatFlipsInwardIsRefusedTheSecondTime) {
  start([](const FakeDns::Question& q) {
    const char* address = q.count == 1 ? "93.184.216.34" : "169.254.169.254";
    return std::vector{
        make_dns_answer(q.query, dns::kNoError, {FakeDns::record(q.query.name, address, 0)})};
  });
  EXPECT_EQ(ask("flip.test").addresses(), Addresses{"93.184.216.34"});
  EXPECT_TRUE(ask("flip.test").addresses().empty());
  EXPECT_EQ(fake_->questions(), 2) << "a TTL of 0 is not kept";
}

TEST_F(ResolverTest, AGrantedNameMayPointInsideAndOnlyWhileItIsGranted) {
  bool granted = false;
  settings_.name_granted = [&](const std::string& name) { return granted && name == "db.test"; };
  start(FakeDns::zone({{"db.test", {"10.1.2.3"}}, {"other.test", {"10.1.2.3"}}}));
  EXPECT_TRUE(ask("db.test").addresses().empty());
  granted = true;
  EXPECT_EQ(ask("db.test").addresses(), Addresses{"10.1.2.3"});
  EXPECT_EQ(resolver_->name_of(*parse_address("10.1.2.3")), "db.test");
  EXPECT_TRUE(ask("other.test").addresses().empty());
  granted = false;
  EXPECT_TRUE(ask("db.test").addresses().empty()) << "not from the cache either";
}

TEST_F(ResolverTest, OnlyListedNamesAreAskedWhenThePolicySaysSo) {
  settings_.dns_only_names = {"github.com", "*.npmjs.example"};
  start(FakeDns::zone({{"github.com", {"93.184.216.34"}}, {"r.npmjs.example", {"93.184.216.35"}}}));
  EXPECT_EQ(ask("GitHub.com").addresses().size(), 1U);
  EXPECT_EQ(ask("r.npmjs.example").addresses().size(), 1U);
  const int before = fake_->questions();
  for (const char* name :
       {"c2VjcmV0.evil.test", "npmjs.example", "xgithub.com", "github.com.evil.test"}) {
    const Asked asked = ask(name);
    EXPECT_TRUE(asked.answer->answers.empty());
    EXPECT_EQ(asked.answer->rcode, dns::kNoError);
    EXPECT_EQ(records_.back().refused, "not among the allowed hosts");
  }
  EXPECT_EQ(fake_->questions(), before);
}

TEST_F(ResolverTest, LocalhostIsAnsweredHere) {
  start(FakeDns::zone({}));
  EXPECT_EQ(ask("localhost").addresses(), Addresses{"127.0.0.1"});
  EXPECT_EQ(ask("foo.LOCALHOST", dns::kAaaa).addresses(), Addresses{"::1"});
  EXPECT_TRUE(ask("localhost", dns::kTxt).addresses().empty());
  EXPECT_EQ(ask("x.invalid").answer->rcode, dns::kNxDomain);
  EXPECT_EQ(ask("x.onion").answer->rcode, dns::kNxDomain);
  EXPECT_EQ(fake_->questions(), 0);
  EXPECT_EQ(ask("notlocalhost").answer->rcode, dns::kNxDomain);
  EXPECT_EQ(fake_->questions(), 1);
}

TEST_F(ResolverTest, CachesByTtlAndLowersIt) {
  start(FakeDns::zone({{"a.test", {"93.184.216.34"}}, {"short.test", {"93.184.216.34"}}}, 1));
  ask("a.test");
  const Asked second = ask("A.test");
  EXPECT_EQ(fake_->questions(), 1);
  EXPECT_LE(second.answer->answers.at(0).ttl, 1U);
  EXPECT_EQ(records_.size(), 2U) << "an answer from the cache is recorded too";
  std::this_thread::sleep_for(1100ms);
  ask("a.test");
  EXPECT_EQ(fake_->questions(), 2);
}

TEST_F(ResolverTest, TheCacheIsBounded) {
  settings_.limits.cache_entries_max = 3;
  start([](const FakeDns::Question& q) {
    return std::vector{
        make_dns_answer(q.query, dns::kNoError, {FakeDns::record(q.query.name, "8.8.8.8")})};
  });
  for (const char* name : {"a", "b", "c", "d"}) ask(name);
  EXPECT_EQ(fake_->questions(), 4);
  ask("d");
  ask("b");
  EXPECT_EQ(fake_->questions(), 4);
  ask("a");
  EXPECT_EQ(fake_->questions(), 5);
}

TEST_F(ResolverTest, PinsAreBounded) {
  settings_.limits.pins_max = 2;
  start([](const FakeDns::Question& q) {
    return std::vector{make_dns_answer(q.query, dns::kNoError,
                                       {FakeDns::record(q.query.name, "8.8.8." + q.query.name)})};
  });
  for (const char* name : {"1", "2", "3"}) ask(name);
  EXPECT_EQ(resolver_->name_of(*parse_address("8.8.8.1")), "");
  EXPECT_EQ(resolver_->name_of(*parse_address("8.8.8.2")), "2");
  EXPECT_EQ(resolver_->name_of(*parse_address("8.8.8.3")), "3");
}

TEST_F(ResolverTest, MalformedQuestionsGetFormErr) {
  start(FakeDns::zone({}));
  const std::string good = make_dns_question(5, *make_dns_query("a.test", dns::kA));
  const Asked asked = ask_raw(good + "junk");
  ASSERT_TRUE(asked.message.size() >= 12);
  EXPECT_EQ(asked.message[3] & 0xf, dns::kFormErr);
  EXPECT_EQ(ask_raw("crumb", Resolver::Transport::datagram, 50ms).message, "");
  EXPECT_EQ(fake_->questions(), 0);
}

TEST_F(ResolverTest, OddQuestionsAreRefusedHere) {
  start(FakeDns::zone({}));
  EXPECT_EQ(ask("a.test", dns::kAny).answer->rcode, dns::kNotImp);
  EXPECT_EQ(ask("a.test", dns::kAxfr).answer->rcode, dns::kNotImp);
  std::string chaos = make_dns_question(5, *make_dns_query("version.bind", dns::kTxt));
  chaos[chaos.size() - 1] = 3;
  EXPECT_EQ(ask_raw(chaos).message[3] & 0xf, dns::kRefused);
  EXPECT_EQ(fake_->questions(), 0);
}

TEST_F(ResolverTest, NoUpstreamIsServFailAndSaid) {
  // Bound but silent port closed again: nobody is there.
  std::uint16_t port = 0;
  { const Fd closed = std::move(*listen_on_loopback(false, port)); }
  start({*parse_address("127.0.0.1", port)});
  EXPECT_EQ(ask("a.test").answer->rcode, dns::kServFail);
  EXPECT_NE(records_.at(0).refused.find("no answer from 127.0.0.1"), std::string::npos);
}

TEST_F(ResolverTest, ADeadFirstServerCostsOneAttemptOnce) {
  settings_.limits.upstream.attempt = 200ms;
  FakeDns silent([](const FakeDns::Question&) { return std::vector<std::string>{}; });
  fake_ =
      std::make_unique<FakeDns>(FakeDns::zone({{"a.test", {"8.8.8.8"}}, {"b.test", {"8.8.8.8"}}}));
  start({silent.address(), fake_->address()});
  EXPECT_EQ(ask("a.test").addresses().size(), 1U);
  EXPECT_EQ(ask("b.test").addresses().size(), 1U);
  EXPECT_EQ(silent.questions(), 1) << "the one that answered is asked first afterwards";
}

TEST_F(ResolverTest, SilenceEndsInServFail) {
  settings_.limits.upstream.attempt = 50ms;
  settings_.limits.upstream.total = 200ms;
  start([](const FakeDns::Question&) { return std::vector<std::string>{}; });
  EXPECT_EQ(ask("a.test").answer->rcode, dns::kServFail);
  EXPECT_GE(fake_->questions(), 3);
}

TEST_F(ResolverTest, AnUnhelpfulServerIsPassedOverAndItsAnswerKeptForTheEnd) {
  FakeDns refuses([](const FakeDns::Question& q) {
    return std::vector{make_dns_answer(q.query, dns::kRefused)};
  });
  fake_ = std::make_unique<FakeDns>(FakeDns::zone({{"a.test", {"8.8.8.8"}}}));
  start({refuses.address(), fake_->address()});
  EXPECT_EQ(ask("a.test").addresses().size(), 1U);
  start({refuses.address()});
  EXPECT_EQ(ask("a.test").answer->rcode, dns::kRefused);
}

TEST_F(ResolverTest, ForgedAndStrayAnswersAreIgnored) {
  start([](const FakeDns::Question& q) {
    const DnsRecord lie = FakeDns::record(q.query.name, "6.6.6.6");
    DnsQuery other_id = q.query;
    other_id.id ^= 1;
    DnsQuery other_name = *make_dns_query("other.test", dns::kA);
    other_name.id = q.query.id;
    DnsQuery other_type = *make_dns_query(q.query.name, dns::kAaaa);
    other_type.id = q.query.id;
    return std::vector{
        make_dns_answer(other_id, dns::kNoError, {lie}),
        make_dns_answer(other_name, dns::kNoError, {lie}),
        make_dns_answer(other_type, dns::kNoError, {lie}),
        "garbage"s,
        make_dns_question(q.query.id, q.query), // a question instead of an answer
        make_dns_answer(q.query, dns::kNoError, {FakeDns::record(q.query.name, "8.8.8.8")})};
  });
  EXPECT_EQ(ask("a.test").addresses(), Addresses{"8.8.8.8"});
}

TEST_F(ResolverTest, ACutAnswerIsAskedForByTcp) {
  start([](const FakeDns::Question& q) {
    std::vector<DnsRecord> many;
    for (int i = 0; i < 60; ++i)
      many.push_back(FakeDns::record(q.query.name, "8.8.8." + std::to_string(i)));
    std::string whole = make_dns_answer(q.query, dns::kNoError, many);
    return std::vector{q.tcp ? whole : fit_datagram(q.query, whole)};
  });
  EXPECT_EQ(ask("big.test").addresses().size(), 60U);
  const Asked datagram = ask("big.test", dns::kA, false, Resolver::Transport::datagram);
  EXPECT_TRUE(datagram.answer->truncated);
  EXPECT_LE(datagram.message.size(), 512U);
}

TEST_F(ResolverTest, TheSameQuestionTwiceAtOnceIsAskedOnce) {
  start([](const FakeDns::Question& q) {
    std::this_thread::sleep_for(50ms);
    return std::vector{
        make_dns_answer(q.query, dns::kNoError, {FakeDns::record(q.query.name, "8.8.8.8")})};
  });
  int answers = 0;
  for (int i = 0; i < 5; ++i) {
    resolver_->serve(
        make_dns_question(static_cast<std::uint16_t>(i), *make_dns_query("a.test", dns::kA)),
        Resolver::Transport::datagram, [&answers, i](const std::string& m) {
          EXPECT_EQ(parse_dns_answer(m)->id, i);
          ++answers;
        });
  }
  EXPECT_TRUE(run_until(*loop_, [&] { return answers == 5; }));
  EXPECT_EQ(fake_->questions(), 1);
  EXPECT_EQ(records_.size(), 5U);
}

TEST_F(ResolverTest, TooManyAtOnceAreServFailAtOnce) {
  settings_.limits.in_flight_max = 3;
  settings_.limits.upstream.total = 300ms;
  start([](const FakeDns::Question&) { return std::vector<std::string>{}; });
  int failed = 0;
  for (int i = 0; i < 5; ++i) {
    resolver_->serve(make_dns_question(1, *make_dns_query("n" + std::to_string(i), dns::kA)),
                     Resolver::Transport::datagram, [&](const std::string&) { ++failed; });
  }
  EXPECT_EQ(failed, 2);
  EXPECT_TRUE(run_until(*loop_, [&] { return failed == 5; }));
}

TEST_F(ResolverTest, ResolveGivesBothFamiliesIpv4First) {
  start(FakeDns::zone({{"a.test", {"2606:2800::1", "8.8.8.8"}}, {"in.test", {"10.0.0.1"}}}));
  std::vector<Address> got;
  std::string why;
  bool done = false;
  const auto take = [&](std::vector<Address> addresses, std::string reason) {
    got = std::move(addresses);
    why = std::move(reason);
    done = true;
  };
  resolver_->resolve("a.test", take);
  ASSERT_TRUE(run_until(*loop_, [&] { return done; }));
  ASSERT_EQ(got.size(), 2U);
  EXPECT_FALSE(got[0].v6);
  done = false;
  resolver_->resolve("in.test", take);
  ASSERT_TRUE(run_until(*loop_, [&] { return done; }));
  EXPECT_TRUE(got.empty());
  EXPECT_NE(why.find("10.0.0.1"), std::string::npos);
  done = false;
  resolver_->resolve(std::string(70, 'a'), take);
  ASSERT_TRUE(run_until(*loop_, [&] { return done; }));
  EXPECT_EQ(why, "is no host name");
}

} // namespace
} // namespace nd7
