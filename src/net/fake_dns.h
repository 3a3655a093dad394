// For tests: a DNS server on loopback, in a thread of its own, that says what the test tells it to.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "core/dns_message.h"
#include "net/dns_server.h"
#include "net/sockaddr.h"

namespace nd7 {

class FakeDns {
public:
  struct Question {
    DnsQuery query;
    bool tcp = false;
    int count = 0; // how many came so far, from 1
  };
  // Datagrams to send back (over TCP only the first); none: silence.
  using Script = std::function<std::vector<std::string>(const Question&)>;

  explicit FakeDns(Script script) : script_(std::move(script)) {
    std::uint16_t port = 0;
    listener_ = *listen_on_loopback(false, port);
    address_ = *parse_address("127.0.0.1", port);
    const SocketAddress at(address_);
    udp_ = Fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (bind(udp_.get(), at.get(), at.size) != 0) udp_.reset();
    stop_ = Fd(eventfd(0, EFD_CLOEXEC));
    thread_ = std::thread([this] { run(); });
  }
  ~FakeDns() {
    const std::uint64_t one = 1;
    (void)!write(stop_.get(), &one, sizeof one);
    thread_.join();
  }

  const Address& address() const { return address_; }
  int questions() const { return count_; }

  static DnsRecord record(std::string name, std::string_view address, std::uint32_t ttl = 60) {
    const Address a = *parse_address(address);
    return {std::move(name), a.v6 ? dns::kAaaa : dns::kA, ttl, {}, {a}, 0};
  }
  // The addresses of a name by type; NOERROR without records for the others.
  static Script zone(std::map<std::string, std::vector<std::string>> names,
                     std::uint32_t ttl = 60) {
    return [names = std::move(names), ttl](const Question& q) {
      std::vector<DnsRecord> records;
      const auto found = names.find(q.query.name);
      if (found == names.end()) {
        return std::vector{make_dns_answer(q.query, dns::kNxDomain)};
      }
      for (const std::string& address : found->second) {
        DnsRecord r = record(q.query.name, address, ttl);
        if (r.type == q.query.type) records.push_back(std::move(r));
      }
      return std::vector{make_dns_answer(q.query, dns::kNoError, records)};
    };
  }

private:
  void run() {
    std::array<pollfd, 3> fds{
        {{stop_.get(), POLLIN, 0}, {udp_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}}};
    while (poll(fds.data(), fds.size(), -1) >= 0) {
      if (fds[0].revents != 0) return;
      if (fds[1].revents != 0) on_datagram();
      if (fds[2].revents != 0) on_connection();
    }
  }

  std::vector<std::string> ask(std::string_view message, bool tcp) {
    const auto query = parse_dns_query(message);
    if (!query) return {};
    return script_({*query, tcp, ++count_});
  }

  void on_datagram() {
    std::array<char, 65536> buffer;
    SocketAddress from;
    const ssize_t got =
        recvfrom(udp_.get(), buffer.data(), buffer.size(), 0, from.get(), &from.size);
    if (got < 0) return;
    for (const std::string& answer : ask({buffer.data(), static_cast<std::size_t>(got)}, false)) {
      (void)!sendto(udp_.get(), answer.data(), answer.size(), 0, from.get(), from.size);
    }
  }

  void on_connection() {
    const Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::array<char, 4096> buffer;
    const ssize_t got = recv(fd.get(), buffer.data(), buffer.size(), 0);
    if (got < 2) return;
    const auto answers = ask({buffer.data() + 2, static_cast<std::size_t>(got) - 2}, true);
    if (answers.empty()) return;
    std::string out{static_cast<char>(answers[0].size() >> 8),
                    static_cast<char>(answers[0].size() & 0xff)};
    out += answers[0];
    (void)!send(fd.get(), out.data(), out.size(), MSG_NOSIGNAL);
  }

  Script script_;
  std::atomic<int> count_ = 0;
  Address address_;
  Fd udp_, listener_, stop_;
  std::thread thread_;
};

// Runs a loop until `done` or the time is over; tells whether it was done.
inline bool run_until(EventLoop& loop, const std::function<bool()>& done,
                      std::chrono::milliseconds limit = std::chrono::seconds(5)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    pollfd p{loop.fd(), POLLIN, 0};
    poll(&p, 1, 20);
    loop.run_ready();
  }
  return true;
}

} // namespace nd7
