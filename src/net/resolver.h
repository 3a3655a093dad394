// The session's resolver: answers every DNS question by asking the host's resolvers, records it,
// remembers which name led to an address, and gives no answer that points inside.
//
// An answer "points inside" when an address in it is not of class public_host (core/address.h) or
// lies in a directly connected network of this machine (net/interfaces.h). Such records are left
// out; when no address remains the asker gets NOERROR without records: getaddrinfo then says "No
// address associated with hostname" at once. (REFUSED or SERVFAIL would be "Temporary failure",
// which programs retry; NXDOMAIN would send them through the search list.) Those who use EDNS also
// get the reason as an extended error (RFC 8914, Blocked). The same for a name that the policy does
// not list when dns_only_names is set: nothing is asked upstream then. A host that a person granted
// by name is exempt from both.
//
// Answered here, without asking: localhost and names below it (RFC 6761 6.3), invalid (6.4), onion
// (RFC 7686). Only class IN; ANY and zone transfers are NOTIMP; malformed questions FORMERR.
// What it does not do: validate DNSSEC; read /etc/hosts (programs do that themselves).
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/dns_message.h"
#include "net/network.h"
#include "net/upstream.h"

namespace nd7 {

struct ResolverLimits {
  std::size_t in_flight_max = 256; // waiting askers; the next one gets SERVFAIL
  std::size_t cache_entries_max = 1024;
  std::size_t cache_message_bytes_max = 4096; // longer answers are not kept
  std::size_t pins_max = 8192;                // addresses with a name
  std::uint32_t ttl_s_max = 3600;
  std::uint32_t negative_ttl_s_max = 300;
  std::uint32_t refused_ttl_s_max = 30; // so that a grant or a mended zone shows soon
  UpstreamLimits upstream;
};

class Resolver {
public:
  struct Settings {
    std::vector<Address> upstream;                        // empty: /etc/resolv.conf, followed
    std::vector<std::string> dns_only_names;              // empty: any
    std::function<bool(const std::string&)> name_granted; // network.h; may be empty
    // The networks of this machine as of now (net/interfaces.h). Empty function: none. On an error
    // no address is given out.
    std::function<Result<std::shared_ptr<const std::vector<Prefix>>>()> inside;
    ResolverLimits limits;
  };
  enum class Transport : std::uint8_t { datagram, stream };
  using Reply = std::function<void(std::string message)>;
  using Resolved = std::function<void(std::vector<Address> addresses, std::string why_none)>;

  Resolver(EventLoop& loop, Settings settings,
           std::function<void(const ResolveRecord&)> on_resolve);

  // One question as received. `reply` is called at most once, with a whole message that fits the
  // transport; never for what deserves no answer.
  void serve(std::string_view message, Transport transport, Reply reply);
  // A and AAAA of a name, public ones only, by the same way. Ports of the results are 0.
  void resolve(const std::string& name, Resolved resolved);
  // Thread-safe.
  std::string name_of(const Address& address) const;
  std::vector<std::string> names_of(const Address& address) const;

private:
  using Clock = std::chrono::steady_clock;
  // What is given out and recorded for one question.
  struct Answer {
    std::string message;
    DnsAnswer parsed;
    std::vector<Address> addresses;
    std::string refused;
    bool by_grant = false; // holds addresses inside
  };
  struct Cached {
    Answer answer;
    Clock::time_point made, expires;
    std::list<std::string>::iterator order;
  };
  struct Waiter {
    DnsQuery query;
    std::function<void(const Answer&, std::uint32_t age_s)> take;
  };

  using Take = std::function<void(const Answer&, std::uint32_t age_s)>;
  void ask(const DnsQuery& query, Take take);
  bool answer_here(const DnsQuery& query, const Take& take);
  void finish(const std::string& key, const DnsQuery& query, Result<Upstream::Answer> result);
  Answer judge(const DnsQuery& query, Upstream::Answer answer);
  Answer own(const DnsQuery& query, dns::Rcode rcode, const std::vector<DnsRecord>& records,
             DnsNote note, std::string refused);
  void keep(const std::string& key, const Answer& answer);
  const Cached* cached(const std::string& key, bool granted);
  bool granted(const std::string& name) const;
  void give(const DnsQuery& query, const Answer& answer, std::uint32_t age_s, const Take& take);
  void pin(const std::vector<Address>& addresses, const std::string& name);

  EventLoop& loop_;
  Settings settings_;
  std::function<void(const ResolveRecord&)> on_resolve_;
  Upstream upstream_;
  std::unordered_map<std::string, Cached> cache_;
  std::list<std::string> cache_order_; // oldest first
  std::unordered_map<std::string, std::vector<Waiter>> waiting_;
  std::size_t waiting_count_ = 0;

  struct Pin {
    std::vector<std::string> names; // the latest first
    std::list<std::string>::iterator order;
  };
  mutable std::mutex pins_mutex_;
  std::unordered_map<std::string, Pin> pins_; // by the address's bytes
  std::list<std::string> pins_order_;         // least recently resolved first
};

} // namespace nd7
