// One question forwarded to the host's resolvers, and its answer.
//
// UDP first, from a socket of its own (random port, connected: the kernel drops what another
// address sends), with a random id; the question must come back in the answer. TCP when the answer
// was cut. An attempt waits 2 s, then the next server is asked, round and round for 10 s in all:
// glibc waits 5 s and asks again (we then attach it to the question under way), so a dead first
// server must not cost the whole of its patience. The server that answered last is asked first.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>

#include "base/result.h"
#include "core/dns_message.h"
#include "net/event_loop.h"
#include "net/resolv_conf.h"

namespace nd7 {

struct UpstreamLimits {
  std::chrono::milliseconds attempt{2000};
  std::chrono::milliseconds total{10000};
  int attempts_max = 6;        // failures that come at once (ECONNREFUSED) count too
  int wrong_messages_max = 32; // in one attempt: somebody is guessing
};

class Upstream {
public:
  // The answer as received, parsed once and found to be one to this question.
  struct Answer {
    std::string message;
    DnsAnswer parsed;
  };
  using Done = std::function<void(Result<Answer>)>;

  // `servers`: empty to follow /etc/resolv.conf.
  Upstream(EventLoop& loop, std::vector<Address> servers, UpstreamLimits limits = {},
           std::string resolv_conf = "/etc/resolv.conf");
  ~Upstream();
  // Calls `done` once, later or at once. Errors: no server configured, no answer within the limit.
  void ask(const DnsQuery& query, Done done);

private:
  class Ask;
  friend class Ask;

  EventLoop& loop_;
  UpstreamLimits limits_;
  std::vector<UpstreamServer> fixed_;
  ResolvConf conf_;
  Address last_good_;
  std::unordered_set<std::shared_ptr<Ask>> asks_;
};

} // namespace nd7
