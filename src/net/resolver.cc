#include "net/resolver.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace nd7 {
namespace {

constexpr std::uint32_t kLocalTtl_s = 3600;
constexpr std::size_t kNamesPerAddressMax = 8;

bool is_or_below(std::string_view name, std::string_view domain) {
  return name == domain || (name.size() > domain.size() && name.ends_with(domain) &&
                            name[name.size() - domain.size() - 1] == '.');
}

// Askers with the same key can share an answer.
std::string key_of(const DnsQuery& query) {
  return fmt::format("{} {} {}{}{}{}", query.name, query.type, query.edns, query.dnssec_ok,
                     query.checking_disabled, query.recursion_desired);
}

std::string pin_key(const Address& address) {
  const Address a = unmapped(address);
  return std::string(a.bytes.begin(), a.bytes.begin() + (a.v6 ? 16 : 4));
}

// Why an address may not be given out, or "".
// Null: what is inside is not known.
std::string inside_reason(const Address& address, const std::vector<Prefix>* inside) {
  const AddressClass c = classify(address);
  if (c != AddressClass::public_host) {
    return fmt::format("points at {} ({})", address_text(address), class_name(c));
  }
  if (inside == nullptr) return "the networks of this machine cannot be read";
  if (contains(*inside, address)) {
    return fmt::format("points at {} (a network of this machine)", address_text(address));
  }
  return {};
}

} // namespace

Resolver::Resolver(EventLoop& loop, Settings settings,
                   std::function<void(const ResolveRecord&)> on_resolve)
    : loop_(loop), settings_(std::move(settings)), on_resolve_(std::move(on_resolve)),
      upstream_(loop_, settings_.upstream, settings_.limits.upstream) {}

void Resolver::serve(std::string_view message, Transport transport, Reply reply) {
  const auto query = parse_dns_query(message);
  if (!query) {
    if (!query.error().silent) reply(make_dns_refusal(query.error()));
    return;
  }
  ask(*query, [query = *query, transport, reply = std::move(reply)](const Answer& answer,
                                                                    std::uint32_t age_s) {
    std::string adapted = adapt_dns_answer(answer.message, answer.parsed, query, age_s);
    reply(transport == Transport::datagram ? fit_datagram(query, std::move(adapted))
                                           : std::move(adapted));
  });
}

void Resolver::resolve(const std::string& name, Resolved resolved) {
  struct Both {
    std::vector<Address> addresses;
    std::string why_none;
    int left = 2;
    Resolved resolved;
  };
  auto both = std::make_shared<Both>();
  both->resolved = std::move(resolved);
  for (const std::uint16_t type : {dns::kA, dns::kAaaa}) {
    const auto query = make_dns_query(name, type);
    const Take take = [both, type](const Answer& answer, std::uint32_t) {
      // IPv4 first: a machine without IPv6 should not wait for it.
      both->addresses.insert(type == dns::kA ? both->addresses.begin() : both->addresses.end(),
                             answer.addresses.begin(), answer.addresses.end());
      if (both->why_none.empty()) both->why_none = answer.refused;
      if (--both->left > 0) return;
      if (both->addresses.empty() && both->why_none.empty()) both->why_none = "does not resolve";
      both->resolved(std::move(both->addresses), std::move(both->why_none));
    };
    if (query)
      ask(*query, take);
    else
      take(Answer{{}, {}, {}, "is no host name"}, 0);
  }
}

std::string Resolver::name_of(const Address& address) const {
  const auto names = names_of(address);
  return names.empty() ? std::string() : names.front();
}

std::vector<std::string> Resolver::names_of(const Address& address) const {
  const std::scoped_lock lock(pins_mutex_);
  const auto found = pins_.find(pin_key(address));
  return found == pins_.end() ? std::vector<std::string>() : found->second.names;
}

bool Resolver::granted(const std::string& name) const {
  return settings_.name_granted && settings_.name_granted(name);
}

void Resolver::ask(const DnsQuery& query, Take take) {
  if (answer_here(query, take)) return;
  const std::string key = key_of(query);
  if (const Cached* found = cached(key, granted(query.name))) {
    const auto age = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - found->made);
    return give(query, Answer(found->answer), static_cast<std::uint32_t>(age.count()), take);
  }
  if (waiting_count_ >= settings_.limits.in_flight_max) {
    const char* why = "too many questions at once";
    return give(query, own(query, dns::kServFail, {}, {dns::kOther, why}, why), 0, take);
  }
  ++waiting_count_;
  auto& waiters = waiting_[key];
  waiters.push_back({query, std::move(take)});
  if (waiters.size() > 1) return;
  upstream_.ask(query, [this, key, query](Result<Upstream::Answer> result) {
    finish(key, query, std::move(result));
  });
}

// Questions that never go out.
bool Resolver::answer_here(const DnsQuery& query, const Take& take) {
  const auto say = [&](dns::Rcode rcode, const std::vector<DnsRecord>& records,
                       const char* refused) {
    DnsNote note;
    if (*refused != '\0') note = {dns::kBlocked, refused};
    give(query, own(query, rcode, records, note, refused), 0, take);
    return true;
  };
  if (query.klass != 1) return say(dns::kRefused, {}, "not a question about the Internet");
  if (query.type == dns::kAny || query.type == dns::kAxfr || query.type == dns::kIxfr) {
    return say(dns::kNotImp, {}, "asks for everything at once");
  }
  if (is_or_below(query.name, "localhost")) {
    std::vector<DnsRecord> records;
    if (query.type == dns::kA || query.type == dns::kAaaa) {
      const char* text = query.type == dns::kA ? "127.0.0.1" : "::1";
      records.push_back({query.name, query.type, kLocalTtl_s, {}, {*parse_address(text)}, 0});
    }
    return say(dns::kNoError, records, "");
  }
  if (is_or_below(query.name, "invalid") || is_or_below(query.name, "onion")) {
    return say(dns::kNxDomain, {}, "");
  }
  const auto& names = settings_.dns_only_names;
  if (!names.empty() && !granted(query.name) &&
      std::none_of(names.begin(), names.end(), [&](const std::string& pattern) {
        return dns_name_matches(pattern, query.name);
      })) {
    return say(dns::kNoError, {}, "not among the allowed hosts");
  }
  return false;
}

void Resolver::finish(const std::string& key, const DnsQuery& query,
                      Result<Upstream::Answer> result) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return;
  std::vector<Waiter> waiters = std::move(found->second);
  waiting_.erase(found);
  waiting_count_ -= waiters.size();
  const Answer answer =
      result ? judge(query, std::move(*result))
             : own(query, dns::kServFail, {}, {dns::kNoReachableAuthority, result.error().text},
                   result.error().text);
  if (result) keep(key, answer);
  for (const Waiter& waiter : waiters) give(waiter.query, answer, 0, waiter.take);
}

// What may be passed on of an upstream answer.
Resolver::Answer Resolver::judge(const DnsQuery& query, Upstream::Answer answer) {
  static const std::vector<Prefix> kNone;
  std::shared_ptr<const std::vector<Prefix>> networks;
  if (settings_.inside) networks = settings_.inside().value_or(nullptr);
  const std::vector<Prefix>* inside = settings_.inside ? networks.get() : &kNone;
  const auto why = [&](const DnsRecord& record) {
    for (const Address& address : record.addresses) {
      std::string reason = inside_reason(address, inside);
      if (!reason.empty()) return reason;
    }
    return std::string();
  };
  Answer result;
  std::vector<DnsRecord> kept;
  const bool by_grant = granted(query.name);
  for (const DnsRecord& record : answer.parsed.answers) {
    const std::string reason = why(record);
    if (!reason.empty() && by_grant) {
      result.by_grant = true;
    } else if (!reason.empty()) {
      if (result.refused.empty()) result.refused = reason;
      continue;
    }
    kept.push_back(record);
    result.addresses.insert(result.addresses.end(), record.addresses.begin(),
                            record.addresses.end());
  }
  // Glue is nobody's answer, but some askers use it: with any of it inside all of it goes.
  const bool bad_glue = std::any_of(answer.parsed.others.begin(), answer.parsed.others.end(),
                                    [&](const DnsRecord& r) { return !why(r).empty(); });
  if (result.refused.empty() && !bad_glue) {
    result.message = std::move(answer.message);
    result.parsed = std::move(answer.parsed);
    return result;
  }
  if (result.addresses.empty()) kept.clear();
  DnsNote note;
  if (!result.refused.empty()) note = {dns::kBlocked, result.refused};
  Answer made = own(query, static_cast<dns::Rcode>(answer.parsed.rcode), kept, note,
                    std::move(result.refused));
  return made;
}

Resolver::Answer Resolver::own(const DnsQuery& query, dns::Rcode rcode,
                               const std::vector<DnsRecord>& records, DnsNote note,
                               std::string refused) {
  Answer answer;
  answer.message = make_dns_answer(query, rcode, records, note);
  if (auto parsed = parse_dns_answer(answer.message)) answer.parsed = std::move(*parsed);
  answer.parsed.question = query.question;
  for (const DnsRecord& record : answer.parsed.answers) {
    answer.addresses.insert(answer.addresses.end(), record.addresses.begin(),
                            record.addresses.end());
  }
  answer.refused = std::move(refused);
  return answer;
}

void Resolver::keep(const std::string& key, const Answer& answer) {
  const ResolverLimits& limits = settings_.limits;
  if (answer.message.size() > limits.cache_message_bytes_max) return;
  const DnsAnswer& parsed = answer.parsed;
  std::uint32_t ttl = limits.ttl_s_max;
  for (const DnsRecord& record : parsed.answers) ttl = std::min(ttl, record.ttl);
  if (!answer.refused.empty()) {
    ttl = std::min(ttl, limits.refused_ttl_s_max);
  } else if (parsed.rcode != dns::kNoError && parsed.rcode != dns::kNxDomain) {
    return;
  } else if (parsed.answers.empty()) {
    ttl = std::min(parsed.negative_ttl, limits.negative_ttl_s_max);
  }
  if (ttl == 0) return;
  while (cache_.size() >= limits.cache_entries_max && !cache_order_.empty()) {
    cache_.erase(cache_order_.front());
    cache_order_.pop_front();
  }
  const auto now = Clock::now();
  const auto order = cache_order_.insert(cache_order_.end(), key);
  const auto [at, added] =
      cache_.try_emplace(key, Cached{answer, now, now + std::chrono::seconds(ttl), order});
  if (!added) cache_order_.erase(order);
}

const Resolver::Cached* Resolver::cached(const std::string& key, bool granted) {
  const auto found = cache_.find(key);
  if (found == cache_.end()) return nullptr;
  // A grant given or taken back since then makes another answer.
  const Answer& answer = found->second.answer;
  const bool stale = granted ? !answer.refused.empty() : answer.by_grant;
  if (!stale && Clock::now() < found->second.expires) return &found->second;
  cache_order_.erase(found->second.order);
  cache_.erase(found);
  return nullptr;
}

// Every question is recorded, also one answered from the cache, and pinned before the asker knows.
void Resolver::give(const DnsQuery& query, const Answer& answer, std::uint32_t age_s,
                    const Take& take) {
  if (!is_or_below(query.name, "localhost")) pin(answer.addresses, query.name);
  if (on_resolve_) {
    ResolveRecord record{query.name, dns_type_text(query.type), {}, answer.refused};
    for (const Address& address : answer.addresses) record.answers.push_back(address_text(address));
    on_resolve_(record);
  }
  take(answer, age_s);
}

void Resolver::pin(const std::vector<Address>& addresses, const std::string& name) {
  const std::scoped_lock lock(pins_mutex_);
  for (const Address& address : addresses) {
    const std::string key = pin_key(address);
    if (const auto found = pins_.find(key); found != pins_.end()) {
      auto& names = found->second.names;
      std::erase(names, name);
      names.insert(names.begin(), name);
      if (names.size() > kNamesPerAddressMax) names.pop_back();
      pins_order_.splice(pins_order_.end(), pins_order_, found->second.order);
      continue;
    }
    if (pins_.size() >= settings_.limits.pins_max) {
      pins_.erase(pins_order_.front());
      pins_order_.pop_front();
    }
    pins_[key] = {{name}, pins_order_.insert(pins_order_.end(), key)};
  }
}

} // namespace nd7
