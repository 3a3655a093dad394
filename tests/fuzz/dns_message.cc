// Both readers of DNS messages, and the writers on whatever they read.
#include "core/dns_message.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto query = nd7::parse_dns_query(bytes);
  if (query) {
    // What is sent on must be a question again, with the same name.
    const auto again = nd7::parse_dns_query(nd7::make_dns_question(1, *query));
    if (!again || again->name != query->name) std::abort();
    const auto own =
        nd7::make_dns_answer(*query, nd7::dns::kNoError, {}, {nd7::dns::kBlocked, "points inside"});
    if (nd7::fit_datagram(*query, own).size() > query->udp_bytes) std::abort();
  }
  if (const auto answer = nd7::parse_dns_answer(bytes)) {
    for (const auto& record : answer->answers) {
      for (const char c : record.name) {
        if (c <= ' ' || c >= 127) std::abort();
      }
    }
    if (const auto asked = nd7::make_dns_query("example.com", nd7::dns::kA)) {
      if (nd7::adapt_dns_answer(bytes, *answer, *asked, 3).size() != size) std::abort();
    }
  }
  return 0;
}
