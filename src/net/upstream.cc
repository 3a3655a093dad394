#include "net/upstream.h"

#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/random.h>

#include <algorithm>
#include <array>

#include "net/sockaddr.h"

namespace nd7 {
namespace {

std::uint16_t random_id() {
  std::uint16_t id = 0;
  // Cannot fail for so few bytes once the pool is initialised (getrandom(2)).
  while (getrandom(&id, sizeof id, 0) != sizeof id) {
  }
  return id;
}

// The server has nothing useful to say; another may have.
bool is_unhelpful(std::uint8_t rcode) {
  return rcode == dns::kServFail || rcode == dns::kNotImp || rcode == dns::kRefused;
}

} // namespace

class Upstream::Ask : public std::enable_shared_from_this<Ask> {
public:
  Ask(Upstream& owner, DnsQuery query, std::vector<UpstreamServer> servers, Done done)
      : owner_(owner), query_(std::move(query)), servers_(std::move(servers)),
        done_(std::move(done)), deadline_(EventLoop::Clock::now() + owner.limits_.total) {}
  ~Ask() { stop(); }

  void next_attempt() {
    stop();
    if (attempts_ >= owner_.limits_.attempts_max || EventLoop::Clock::now() >= deadline_) {
      return finish();
    }
    server_ = servers_[static_cast<std::size_t>(attempts_) % servers_.size()];
    ++attempts_;
    wrong_messages_ = 0;
    id_ = random_id();
    question_ = make_dns_question(id_, query_);
    if (!open(SOCK_DGRAM, EPOLLIN) ||
        send(socket_.get(), question_.data(), question_.size(), MSG_NOSIGNAL) < 0) {
      return fail_soon();
    }
    arm(owner_.limits_.attempt);
  }

private:
  bool open(int type, std::uint32_t events) {
    const SocketAddress to(server_.address, server_.scope);
    socket_ = Fd(socket(to.family(), type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket_) return false;
    if (connect(socket_.get(), to.get(), to.size) != 0 && errno != EINPROGRESS) return false;
    const auto self = weak_from_this();
    return owner_.loop_
        .watch(socket_.get(), events,
               [self, tcp = type == SOCK_STREAM](std::uint32_t) {
                 if (const auto held = self.lock()) tcp ? held->on_tcp() : held->on_udp();
               })
        .has_value();
  }

  void stop() {
    if (socket_) owner_.loop_.forget(socket_.get());
    socket_.reset();
    owner_.loop_.cancel(timer_);
    timer_ = 0;
  }

  void arm(std::chrono::milliseconds wait) {
    const auto self = weak_from_this();
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline_ - EventLoop::Clock::now() + std::chrono::milliseconds(1));
    timer_ = owner_.loop_.after(std::min(wait, left), [self] {
      if (const auto held = self.lock()) held->next_attempt();
    });
  }

  // Not at once: the caller of ask() must not find the answer given before it returned, and a row
  // of failures must not nest.
  void fail_soon() {
    stop();
    arm(std::chrono::milliseconds(1));
  }

  void on_udp() {
    std::array<char, kDnsMessageBytesMax> buffer;
    for (;;) {
      const ssize_t got = recv(socket_.get(), buffer.data(), buffer.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      if (got < 0) return fail_soon(); // ECONNREFUSED: nobody there
      const std::string_view message(buffer.data(), static_cast<std::size_t>(got));
      auto parsed = parse_dns_answer(message);
      if (!parsed || !matches(*parsed)) {
        if (++wrong_messages_ > owner_.limits_.wrong_messages_max) return fail_soon();
        continue;
      }
      if (parsed->truncated) return ask_by_tcp();
      return take(std::string(message), std::move(*parsed));
    }
  }

  bool matches(const DnsAnswer& answer) const {
    return answer.id == id_ && answer.name == query_.name && answer.type == query_.type;
  }

  void ask_by_tcp() {
    stop();
    output_.clear();
    output_ += static_cast<char>(question_.size() >> 8 & 0xff);
    output_ += static_cast<char>(question_.size() & 0xff);
    output_ += question_;
    input_.clear();
    if (!open(SOCK_STREAM, EPOLLOUT)) return fail_soon();
    const int on = 1;
    setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    arm(owner_.limits_.attempt * 2);
  }

  void on_tcp() {
    if (!output_.empty()) {
      const ssize_t sent = send(socket_.get(), output_.data(), output_.size(), MSG_NOSIGNAL);
      if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (sent < 0) return fail_soon();
      output_.erase(0, static_cast<std::size_t>(sent));
      if (output_.empty()) owner_.loop_.change(socket_.get(), EPOLLIN);
      return;
    }
    std::array<char, 16384> buffer;
    const ssize_t got = recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return fail_soon();
    input_.append(buffer.data(), static_cast<std::size_t>(got));
    if (input_.size() < 2) return;
    const std::size_t length = static_cast<std::size_t>(static_cast<unsigned char>(input_[0]))
                                   << 8 |
                               static_cast<unsigned char>(input_[1]);
    if (input_.size() < length + 2) return;
    std::string message = input_.substr(2, length);
    auto parsed = parse_dns_answer(message);
    if (!parsed || !matches(*parsed) || parsed->truncated) return fail_soon();
    take(std::move(message), std::move(*parsed));
  }

  void take(std::string message, DnsAnswer parsed) {
    if (is_unhelpful(parsed.rcode)) {
      const bool others_left = static_cast<std::size_t>(attempts_) < servers_.size();
      unhelpful_ = Answer{std::move(message), std::move(parsed)};
      if (others_left) return fail_soon();
      return finish();
    }
    owner_.last_good_ = server_.address;
    complete(Answer{std::move(message), std::move(parsed)});
  }

  void finish() {
    if (unhelpful_) return complete(std::move(*unhelpful_));
    std::string names;
    for (const UpstreamServer& server : servers_) {
      names += (names.empty() ? "" : ", ") + address_text(server.address);
    }
    complete(fail("no answer from " + names));
  }

  void complete(Result<Answer> result) {
    stop();
    const auto self = shared_from_this();
    owner_.asks_.erase(self);
    done_(std::move(result));
  }

  Upstream& owner_;
  DnsQuery query_;
  std::vector<UpstreamServer> servers_;
  Done done_;
  EventLoop::Clock::time_point deadline_;
  UpstreamServer server_;
  std::string question_;
  std::uint16_t id_ = 0;
  int attempts_ = 0;
  int wrong_messages_ = 0;
  std::optional<Answer> unhelpful_;
  Fd socket_;
  EventLoop::Timer timer_ = 0;
  std::string input_, output_;
};

Upstream::Upstream(EventLoop& loop, std::vector<Address> servers, UpstreamLimits limits,
                   std::string resolv_conf)
    : loop_(loop), limits_(limits), conf_(std::move(resolv_conf)) {
  for (const Address& address : servers) fixed_.push_back({address, 0});
}

Upstream::~Upstream() = default;

void Upstream::ask(const DnsQuery& query, Done done) {
  std::vector<UpstreamServer> servers = fixed_.empty() ? conf_.servers() : fixed_;
  if (servers.empty()) {
    done(fail("no resolver is configured", "add a nameserver line to /etc/resolv.conf"));
    return;
  }
  const auto good = std::find_if(servers.begin(), servers.end(),
                                 [&](const UpstreamServer& s) { return s.address == last_good_; });
  if (good != servers.end()) std::rotate(servers.begin(), good, servers.end());
  const auto ask = std::make_shared<Ask>(*this, query, std::move(servers), std::move(done));
  asks_.insert(ask);
  ask->next_attempt();
}

} // namespace nd7
