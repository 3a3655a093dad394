// The DNS messages that the resolver reads and writes (RFC 1035, 6891, 8914, 9460).
//
// Pure. The wire format is taken apart by glibc's ns_* functions; this unit gives their results
// types, keeps what must travel unchanged, and decides nothing. Names are in presentation form:
// lower case, no trailing dot ("" is the root), and every byte that is not a plain printable one
// escaped as \DDD or \c, so a name is always printable ASCII.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/address.h"

namespace nd7 {

inline constexpr std::size_t kDnsMessageBytesMax = 65535;
inline constexpr std::size_t kDnsUdpBytesMin = 512;  // without EDNS
inline constexpr std::size_t kDnsUdpBytesMax = 1232; // what is offered and used with EDNS

namespace dns {

// Only the numbers that are named in the code.
inline constexpr std::uint16_t kA = 1, kNs = 2, kCname = 5, kSoa = 6, kPtr = 12, kMx = 15,
                               kTxt = 16, kAaaa = 28, kSrv = 33, kOpt = 41, kSvcb = 64, kHttps = 65,
                               kIxfr = 251, kAxfr = 252, kAny = 255;
enum Rcode : std::uint8_t {
  kNoError = 0,
  kFormErr = 1,
  kServFail = 2,
  kNxDomain = 3,
  kNotImp = 4,
  kRefused = 5,
};
// Extended errors (RFC 8914): shown by dig and by resolvers that care.
enum ExtendedError : std::uint16_t {
  kOther = 0,
  kStale = 3,
  kBlocked = 15,
  kNoReachableAuthority = 22,
  kNetworkError = 23,
};

} // namespace dns

struct DnsQuery {
  std::uint16_t id = 0;
  std::string name;
  std::uint16_t type = 0;
  std::uint16_t klass = 0;
  std::string question; // as on the wire, letter case kept: name, type, class
  bool recursion_desired = false;
  bool checking_disabled = false;
  bool authentic_data = false;
  bool edns = false;
  bool dnssec_ok = false;
  std::size_t udp_bytes = kDnsUdpBytesMin; // what the asker takes in one datagram
};

// Why a message cannot be served as a question. `silent`: not even an answer is due (too short for
// an id, or itself an answer, which two resolvers would throw at each other for ever).
struct DnsRefusal {
  bool silent = false;
  std::uint16_t id = 0;
  dns::Rcode rcode = dns::kFormErr;
};
std::expected<DnsQuery, DnsRefusal> parse_dns_query(std::string_view message);

struct DnsRecord {
  std::string name;
  std::uint16_t type = 0;
  std::uint32_t ttl = 0;          // seconds, at most 2^31-1
  std::string target;             // of a CNAME
  std::vector<Address> addresses; // of A and AAAA; the hints of SVCB and HTTPS
  std::size_t ttl_offset = 0;     // in the message
};

struct DnsAnswer {
  std::uint16_t id = 0;
  std::uint8_t rcode = 0;
  bool truncated = false;
  bool authentic_data = false;
  std::string question; // as on the wire
  std::string name;     // asked for
  std::uint16_t type = 0;
  std::vector<DnsRecord> answers;
  std::vector<DnsRecord> others;  // authority and additional, without OPT
  std::uint32_t negative_ttl = 0; // of the SOA in authority (RFC 2308), 0 without one
};
// Null for anything but one well-formed answer to one question: trailing bytes, a bad name, a
// record that does not hold what its type demands (A of 5 bytes), more than 512 records.
std::optional<DnsAnswer> parse_dns_answer(std::string_view message);

// The question as it is sent on: our id, the asker's question bytes, EDNS of our own if he used it.
std::string make_dns_question(std::uint16_t id, const DnsQuery& query);
// A query for a name from ourselves (the proxy). Null when the name does not fit the wire format.
std::optional<DnsQuery> make_dns_query(std::string_view name, std::uint16_t type);

// An answer of our own making: to `query`, with the records given (A, AAAA, CNAME only; owner names
// written out in full), and the extended error if the asker understands it.
struct DnsNote {
  std::optional<std::uint16_t> code;
  std::string text; // cut at 200 bytes
};
std::string make_dns_answer(const DnsQuery& query, dns::Rcode rcode,
                            const std::vector<DnsRecord>& records = {}, const DnsNote& note = {});
std::string make_dns_refusal(const DnsRefusal& refusal);
// The same for a datagram of at most query.udp_bytes: without records and with TC set if too long.
std::string fit_datagram(const DnsQuery& query, std::string answer);

// An upstream or cached answer made to fit the asker: his id, his spelling of the question, TTLs
// lowered by `age_s` (not below 0).
std::string adapt_dns_answer(std::string answer, const DnsAnswer& parsed, const DnsQuery& query,
                             std::uint32_t age_s);

std::string dns_type_text(std::uint16_t type); // "A", "AAAA", "TYPE65", ...

// "*.example.com" matches names below it, not itself; "example.com" itself only. Case and a
// trailing dot do not matter.
bool dns_name_matches(std::string_view pattern, std::string_view name);

} // namespace nd7
