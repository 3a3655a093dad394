#include "core/dns_message.h"

#include <arpa/nameser.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace nd7 {
namespace {

constexpr std::size_t kHeaderBytes = 12;
constexpr std::size_t kRecordsMax = 512;
constexpr std::uint16_t kClassIn = 1;
constexpr std::uint16_t kEdnsErrorOption = 15;

constexpr unsigned kResponse = 0x8000, kOpcode = 0x7800, kTruncated = 0x0200,
                   kRecursionDesired = 0x0100, kRecursionAvailable = 0x0080,
                   kAuthenticData = 0x0020, kCheckingDisabled = 0x0010, kRcode = 0x000f;

const unsigned char* wire(std::string_view s) {
  return reinterpret_cast<const unsigned char*>(s.data());
}

std::uint16_t get16(std::string_view s, std::size_t at) {
  const unsigned char* p = wire(s) + at;
  return static_cast<std::uint16_t>(p[0] << 8 | p[1]);
}

std::uint32_t get32(std::string_view s, std::size_t at) {
  return std::uint32_t{get16(s, at)} << 16 | get16(s, at + 2);
}

void put16(std::string& out, unsigned value) {
  out += static_cast<char>(value >> 8 & 0xff);
  out += static_cast<char>(value & 0xff);
}

void put32(std::string& out, std::uint32_t value) {
  put16(out, value >> 16);
  put16(out, value & 0xffff);
}

void set16(std::string& s, std::size_t at, unsigned value) {
  s[at] = static_cast<char>(value >> 8 & 0xff);
  s[at + 1] = static_cast<char>(value & 0xff);
}

std::string canonical(std::string_view presentation) {
  std::string name(presentation);
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  // Trailing dot off, unless it is escaped and so part of the label.
  if (name == ".") return {};
  if (name.ends_with('.') && !name.ends_with("\\.")) name.pop_back();
  return name;
}

// Wire form of a name, uncompressed; nothing if it does not fit.
std::optional<std::string> pack_name(std::string_view name) {
  if (name.find('\0') != std::string_view::npos) return std::nullopt;
  std::array<unsigned char, NS_MAXCDNAME + 1> packed;
  const std::string text = name.empty() ? "." : std::string(name);
  if (ns_name_pton(text.c_str(), packed.data(), packed.size()) < 0) return std::nullopt;
  const unsigned char* end = packed.data();
  if (ns_name_skip(&end, packed.data() + packed.size()) < 0) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(packed.data()),
                     static_cast<std::size_t>(end - packed.data()));
}

struct Name {
  std::string text;
  std::size_t end; // where it ends in the message
};

std::optional<Name> unpack_name(std::string_view message, std::size_t at) {
  std::array<char, NS_MAXDNAME> text;
  const int used = ns_name_uncompress(wire(message), wire(message) + message.size(),
                                      wire(message) + at, text.data(), text.size());
  if (used < 0) return std::nullopt;
  return Name{canonical(text.data()), at + static_cast<std::size_t>(used)};
}

Address address_of(bool v6, const unsigned char* bytes) {
  Address a;
  a.v6 = v6;
  std::copy_n(bytes, v6 ? 16 : 4, a.bytes.begin());
  return a;
}

// SvcParams of SVCB and HTTPS (RFC 9460 2.2): ipv4hint is key 4, ipv6hint key 6.
bool read_hints(std::string_view message, const ns_rr& rr, DnsRecord& record) {
  const std::string_view data(reinterpret_cast<const char*>(ns_rr_rdata(rr)), ns_rr_rdlen(rr));
  const auto rdata_at = static_cast<std::size_t>(ns_rr_rdata(rr) - wire(message));
  if (data.size() < 3) return false;
  const auto target = unpack_name(message.substr(0, rdata_at + data.size()), rdata_at + 2);
  if (!target) return false;
  std::size_t at = target->end - rdata_at;
  while (at < data.size()) {
    if (at + 4 > data.size()) return false;
    const unsigned key = get16(data, at);
    const std::size_t length = get16(data, at + 2);
    at += 4;
    if (at + length > data.size()) return false;
    const std::size_t step = key == 4 ? 4 : key == 6 ? 16 : 0;
    if (step != 0) {
      if (length == 0 || length % step != 0) return false;
      for (std::size_t i = 0; i < length; i += step) {
        record.addresses.push_back(address_of(step == 16, wire(data) + at + i));
      }
    }
    at += length;
  }
  return true;
}

bool read_data(std::string_view message, const ns_rr& rr, DnsRecord& record) {
  const auto at = static_cast<std::size_t>(ns_rr_rdata(rr) - wire(message));
  switch (record.type) {
  case dns::kA:
    if (ns_rr_rdlen(rr) != 4) return false;
    record.addresses.push_back(address_of(false, ns_rr_rdata(rr)));
    return true;
  case dns::kAaaa:
    if (ns_rr_rdlen(rr) != 16) return false;
    record.addresses.push_back(address_of(true, ns_rr_rdata(rr)));
    return true;
  case dns::kCname: {
    const auto target = unpack_name(message, at);
    if (!target || target->end != at + ns_rr_rdlen(rr)) return false;
    record.target = target->text;
    return true;
  }
  case dns::kSvcb:
  case dns::kHttps:
    return read_hints(message, rr, record);
  default:
    return true; // travels unread
  }
}

// The SOA's MINIMUM, its last 32 bits, bounded by the record's own TTL (RFC 2308 5).
std::uint32_t negative_ttl_of(const ns_rr& rr, std::uint32_t ttl) {
  const std::string_view data(reinterpret_cast<const char*>(ns_rr_rdata(rr)), ns_rr_rdlen(rr));
  if (data.size() < 22) return 0;
  return std::min(ttl, get32(data, data.size() - 4));
}

bool read_section(ns_msg& message, std::string_view bytes, ns_sect section, DnsAnswer& answer) {
  for (int i = 0; i < ns_msg_count(message, section); ++i) {
    ns_rr rr;
    if (ns_parserr(&message, section, i, &rr) < 0) return false;
    if (static_cast<unsigned>(ns_rr_type(rr)) == dns::kOpt) continue;
    if (ns_rr_class(rr) != kClassIn) return false;
    DnsRecord record;
    record.name = canonical(ns_rr_name(rr));
    record.type = static_cast<std::uint16_t>(ns_rr_type(rr));
    record.ttl = static_cast<std::uint32_t>(ns_rr_ttl(rr));
    if (record.ttl > 0x7fffffff) record.ttl = 0; // RFC 2181 8
    record.ttl_offset = static_cast<std::size_t>(ns_rr_rdata(rr) - wire(bytes)) - 6;
    if (!read_data(bytes, rr, record)) return false;
    if (section == ns_s_ns && record.type == dns::kSoa) {
      answer.negative_ttl = negative_ttl_of(rr, record.ttl);
    }
    (section == ns_s_an ? answer.answers : answer.others).push_back(std::move(record));
  }
  return true;
}

void put_opt(std::string& out, bool dnssec_ok, const DnsNote& note) {
  out += '\0';
  put16(out, dns::kOpt);
  put16(out, kDnsUdpBytesMax);
  put32(out, dnssec_ok ? 0x8000 : 0);
  if (!note.code) {
    put16(out, 0);
    return;
  }
  const std::string_view text = std::string_view(note.text).substr(0, 200);
  put16(out, static_cast<unsigned>(text.size()) + 6);
  put16(out, kEdnsErrorOption);
  put16(out, static_cast<unsigned>(text.size()) + 2);
  put16(out, *note.code);
  out += text;
}

std::string header(std::uint16_t id, unsigned flags, unsigned questions, unsigned answers,
                   unsigned additional) {
  std::string out;
  put16(out, id);
  put16(out, flags);
  put16(out, questions);
  put16(out, answers);
  put16(out, 0);
  put16(out, additional);
  return out;
}

unsigned answer_flags(const DnsQuery& query) {
  return kResponse | kRecursionAvailable | (query.recursion_desired ? kRecursionDesired : 0U) |
         (query.checking_disabled ? kCheckingDisabled : 0U);
}

} // namespace

std::expected<DnsQuery, DnsRefusal> parse_dns_query(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes || bytes.size() > kDnsMessageBytesMax) {
    return std::unexpected(DnsRefusal{.silent = true});
  }
  DnsQuery query;
  query.id = get16(bytes, 0);
  const unsigned flags = get16(bytes, 2);
  if ((flags & kResponse) != 0) return std::unexpected(DnsRefusal{.silent = true});
  if ((flags & kOpcode) != 0)
    return std::unexpected(DnsRefusal{.id = query.id, .rcode = dns::kNotImp});
  const auto malformed = std::unexpected(DnsRefusal{.id = query.id});

  ns_msg message;
  if (ns_initparse(wire(bytes), static_cast<int>(bytes.size()), &message) < 0) return malformed;
  if (ns_msg_count(message, ns_s_qd) != 1 || ns_msg_count(message, ns_s_an) != 0 ||
      ns_msg_count(message, ns_s_ns) != 0 || (flags & kTruncated) != 0) {
    return malformed;
  }
  const auto name = unpack_name(bytes, kHeaderBytes);
  if (!name || name->end + 4 > bytes.size()) return malformed;
  query.name = name->text;
  query.type = get16(bytes, name->end);
  query.klass = get16(bytes, name->end + 2);
  query.question = bytes.substr(kHeaderBytes, name->end + 4 - kHeaderBytes);
  // The question is sent on as it is, so it may not point elsewhere: 255 bytes is a whole name.
  for (std::size_t at = 0; query.question[at] != '\0';) {
    const auto length = static_cast<unsigned char>(query.question[at]);
    if (length > 63) return malformed;
    at += length + 1U;
  }
  query.recursion_desired = (flags & kRecursionDesired) != 0;
  query.checking_disabled = (flags & kCheckingDisabled) != 0;
  query.authentic_data = (flags & kAuthenticData) != 0;

  for (int i = 0; i < ns_msg_count(message, ns_s_ar); ++i) {
    ns_rr rr;
    if (ns_parserr(&message, ns_s_ar, i, &rr) < 0) return malformed;
    if (static_cast<unsigned>(ns_rr_type(rr)) != dns::kOpt) continue;
    if (query.edns) return malformed; // RFC 6891 6.1.1: at most one
    query.edns = true;
    query.dnssec_ok = (static_cast<std::uint32_t>(ns_rr_ttl(rr)) & 0x8000U) != 0;
    query.udp_bytes = std::clamp<std::size_t>(static_cast<std::size_t>(ns_rr_class(rr)),
                                              kDnsUdpBytesMin, kDnsUdpBytesMax);
  }
  return query;
}

std::optional<DnsAnswer> parse_dns_answer(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes || bytes.size() > kDnsMessageBytesMax) return std::nullopt;
  const unsigned flags = get16(bytes, 2);
  if ((flags & kResponse) == 0 || (flags & kOpcode) != 0) return std::nullopt;
  DnsAnswer answer;
  answer.id = get16(bytes, 0);
  answer.rcode = static_cast<std::uint8_t>(flags & kRcode);
  answer.truncated = (flags & kTruncated) != 0;
  answer.authentic_data = (flags & kAuthenticData) != 0;
  if (get16(bytes, 4) != 1) return std::nullopt;
  if (std::size_t{get16(bytes, 6)} + get16(bytes, 8) + get16(bytes, 10) > kRecordsMax) {
    return std::nullopt;
  }
  const auto name = unpack_name(bytes, kHeaderBytes);
  if (!name || name->end + 4 > bytes.size()) return std::nullopt;
  answer.name = name->text;
  answer.type = get16(bytes, name->end);
  if (get16(bytes, name->end + 2) != kClassIn) return std::nullopt;
  answer.question = bytes.substr(kHeaderBytes, name->end + 4 - kHeaderBytes);
  // A cut answer may end in the middle of a record; its records are not used.
  if (answer.truncated) return answer;
  ns_msg message;
  if (ns_initparse(wire(bytes), static_cast<int>(bytes.size()), &message) < 0) return std::nullopt;
  for (const ns_sect section : {ns_s_an, ns_s_ns, ns_s_ar}) {
    if (!read_section(message, bytes, section, answer)) return std::nullopt;
  }
  return answer;
}

std::string make_dns_question(std::uint16_t id, const DnsQuery& query) {
  const unsigned flags = (query.recursion_desired ? kRecursionDesired : 0U) |
                         (query.checking_disabled ? kCheckingDisabled : 0U) |
                         (query.authentic_data ? kAuthenticData : 0U);
  std::string out = header(id, flags, 1, 0, query.edns ? 1 : 0);
  out += query.question;
  if (query.edns) put_opt(out, query.dnssec_ok, {});
  return out;
}

std::optional<DnsQuery> make_dns_query(std::string_view name, std::uint16_t type) {
  const auto packed = pack_name(name);
  if (!packed) return std::nullopt;
  DnsQuery query;
  query.name = canonical(name);
  query.type = type;
  query.klass = kClassIn;
  query.question = *packed;
  put16(query.question, type);
  put16(query.question, kClassIn);
  query.recursion_desired = true;
  query.udp_bytes = kDnsMessageBytesMax;
  return query;
}

std::string make_dns_answer(const DnsQuery& query, dns::Rcode rcode,
                            const std::vector<DnsRecord>& records, const DnsNote& note) {
  std::string body = query.question;
  unsigned count = 0;
  for (const DnsRecord& record : records) {
    const auto owner = pack_name(record.name);
    if (!owner) continue;
    std::string data;
    if (record.type == dns::kCname) {
      data = pack_name(record.target).value_or("");
    } else if ((record.type == dns::kA || record.type == dns::kAaaa) &&
               record.addresses.size() == 1) {
      const Address& a = record.addresses.front();
      data.assign(a.bytes.begin(), a.bytes.begin() + (a.v6 ? 16 : 4));
    }
    if (data.empty()) continue;
    body += *owner;
    put16(body, record.type);
    put16(body, kClassIn);
    put32(body, record.ttl);
    put16(body, static_cast<unsigned>(data.size()));
    body += data;
    ++count;
  }
  std::string out =
      header(query.id, answer_flags(query) | rcode, 1, count, query.edns ? 1 : 0) + body;
  if (query.edns) put_opt(out, query.dnssec_ok, note);
  return out;
}

std::string make_dns_refusal(const DnsRefusal& refusal) {
  return header(refusal.id, kResponse | kRecursionAvailable | refusal.rcode, 0, 0, 0);
}

std::string fit_datagram(const DnsQuery& query, std::string answer) {
  if (answer.size() <= query.udp_bytes) return answer;
  const unsigned rcode = get16(answer, 2) & kRcode;
  std::string out =
      header(query.id, answer_flags(query) | kTruncated | rcode, 1, 0, query.edns ? 1 : 0);
  out += query.question;
  if (query.edns) put_opt(out, query.dnssec_ok, {});
  return out;
}

std::string adapt_dns_answer(std::string answer, const DnsAnswer& parsed, const DnsQuery& query,
                             std::uint32_t age_s) {
  set16(answer, 0, query.id);
  if (parsed.question.size() == query.question.size()) {
    answer.replace(kHeaderBytes, query.question.size(), query.question);
  }
  for (const auto* section : {&parsed.answers, &parsed.others}) {
    for (const DnsRecord& record : *section) {
      const std::uint32_t left = record.ttl > age_s ? record.ttl - age_s : 0;
      set16(answer, record.ttl_offset, left >> 16);
      set16(answer, record.ttl_offset + 2, left & 0xffff);
    }
  }
  return answer;
}

std::string dns_type_text(std::uint16_t type) {
  switch (type) {
  case dns::kA:
    return "A";
  case dns::kNs:
    return "NS";
  case dns::kCname:
    return "CNAME";
  case dns::kSoa:
    return "SOA";
  case dns::kPtr:
    return "PTR";
  case dns::kMx:
    return "MX";
  case dns::kTxt:
    return "TXT";
  case dns::kAaaa:
    return "AAAA";
  case dns::kSrv:
    return "SRV";
  default:
    return "TYPE" + std::to_string(type); // RFC 3597
  }
}

bool dns_name_matches(std::string_view pattern, std::string_view name) {
  const std::string p = canonical(pattern);
  const std::string n = canonical(name);
  if (p == n) return true;
  return p.starts_with("*.") && n.size() > p.size() - 1 &&
         n.ends_with(std::string_view(p).substr(1));
}

} // namespace nd7
