#include "net/proxy.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

#include <array>

#include "net/connect_request.h"
#include "net/dns_server.h"
#include "net/sockaddr.h"

namespace nd7 {
namespace {

const char* reason_phrase(int status) {
  switch (status) {
  case 400:
    return "Bad Request";
  case 403:
    return "Forbidden";
  case 408:
    return "Request Timeout";
  case 431:
    return "Request Header Fields Too Large";
  case 502:
    return "Bad Gateway";
  case 504:
    return "Gateway Timeout";
  default:
    return "Error";
  }
}

std::uint16_t port_of_peer(int fd) {
  sockaddr_in peer{};
  socklen_t size = sizeof peer;
  return getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 ? ntohs(peer.sin_port)
                                                                         : std::uint16_t{0};
}

} // namespace

class Proxy::Tunnel : public std::enable_shared_from_this<Tunnel> {
public:
  Tunnel(Proxy& proxy, Fd client) : proxy_(proxy) {
    client_.fd = std::move(client);
    from_port_ = port_of_peer(client_.fd.get());
  }
  ~Tunnel() {
    for (Side* side : {&client_, &server_}) {
      if (side->fd) proxy_.loop_.forget(side->fd.get());
    }
    proxy_.loop_.cancel(timer_);
  }

  bool start() {
    wait(proxy_.limits_.request, [this] { refuse({408, "no request came"}); });
    return watch(client_, EPOLLIN);
  }

private:
  enum class State : std::uint8_t { request, resolving, dialling, relay, closing };

  struct Side {
    Fd fd;
    std::string out;       // waiting to be sent to this side
    bool ended = false;    // sent us its end
    bool told_end = false; // was told the other's end
  };

  bool watch(Side& side, std::uint32_t events) {
    return proxy_.loop_
        .watch(side.fd.get(), events,
               [this, &side](std::uint32_t happened) {
                 const auto held = shared_from_this();
                 on_event(side, happened);
               })
        .has_value();
  }

  void wait(std::chrono::milliseconds delay, std::function<void()> then) {
    proxy_.loop_.cancel(timer_);
    timer_ = proxy_.loop_.after(delay, [self = weak_from_this(), then = std::move(then)] {
      if (const auto held = self.lock()) then();
    });
  }

  void close() { proxy_.tunnels_.erase(this); }

  void on_event(Side& side, std::uint32_t events) {
    switch (state_) {
    case State::request:
      return read_request();
    case State::resolving:
      // Interest is off; this is an error or a client that went away.
      return close();
    case State::dialling:
      return &side == &server_ ? on_dialled() : close();
    case State::closing:
      return flush_and_close();
    case State::relay:
      return relay(side, events);
    }
  }

  void read_request() {
    std::array<char, 4096> buffer;
    const ssize_t got = recv(client_.fd.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return close();
    request_.append(buffer.data(), static_cast<std::size_t>(got));
    const std::size_t end = request_.find("\r\n\r\n");
    if (end == std::string::npos) {
      if (request_.size() > proxy_.limits_.request_bytes_max)
        refuse({431, "the request is too long"});
      return;
    }
    if (end + 4 > proxy_.limits_.request_bytes_max) return refuse({431, "the request is too long"});
    auto target = parse_connect_request(std::string_view(request_).substr(0, end + 4));
    if (!target) return refuse(target.error());
    server_.out = request_.substr(end + 4); // what the client sent ahead
    request_.clear();
    name_ = target->name;
    label_ = target->address ? endpoint_text(*target->address)
                             : fmt::format("{}:{}", target->name, target->port);
    proxy_.loop_.change(client_.fd.get(), 0);
    proxy_.loop_.cancel(timer_);
    state_ = State::resolving;
    if (target->address) {
      candidates_ = {*target->address};
      return dial_next();
    }
    proxy_.resolver_.resolve(
        name_, [self = weak_from_this(), port = target->port](std::vector<Address> addresses,
                                                              const std::string& why_none) {
          const auto held = self.lock();
          if (!held || held->state_ != State::resolving) return;
          if (addresses.empty()) {
            return held->refuse({502, fmt::format("{}: {}", held->label_, why_none)});
          }
          for (Address& address : addresses) address.port = port;
          held->candidates_ = std::move(addresses);
          held->dial_next();
        });
  }

  // Tries the addresses one after another; each is decided on just before it is dialled.
  void dial_next() {
    stop_dialling();
    if (next_ == candidates_.size()) return refuse(failure_);
    const Address& address = candidates_[next_++];
    const std::string refusal = proxy_.may_connect_
                                    ? proxy_.may_connect_(address, name_, from_port_)
                                    : std::string("no connection may go out");
    if (!refusal.empty()) {
      return refuse({403, fmt::format("nd7 refused the connection to {}: {}", label_, refusal)});
    }
    const SocketAddress to(address);
    server_.fd = Fd(socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!server_.fd) return dial_failed(errno);
    const int on = 1;
    setsockopt(server_.fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(server_.fd.get(), to.get(), to.size) != 0 && errno != EINPROGRESS) {
      return dial_failed(errno);
    }
    state_ = State::dialling;
    if (!watch(server_, EPOLLOUT)) return dial_failed(EMFILE);
    wait(proxy_.limits_.dial, [this] { dial_failed(ETIMEDOUT); });
  }

  void stop_dialling() {
    proxy_.loop_.cancel(timer_);
    if (!server_.fd) return;
    proxy_.loop_.forget(server_.fd.get());
    server_.fd.reset();
  }

  void dial_failed(int error) {
    failure_ = {
        error == ETIMEDOUT ? 504 : 502,
        fmt::format("{} did not answer: {}", label_, os_error("connect", error).error().text)};
    dial_next();
  }

  void on_dialled() {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(server_.fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return dial_failed(error);
    state_ = State::relay;
    client_.out = "HTTP/1.1 200 Connection established\r\n\r\n";
    rest();
    if (send_waiting(client_) && send_waiting(server_))
      interest();
    else
      close();
  }

  void rest() {
    wait(proxy_.limits_.idle, [this] { close(); });
  }

  Side& other(Side& side) { return &side == &client_ ? server_ : client_; }

  void relay(Side& side, std::uint32_t events) {
    if ((events & EPOLLOUT) != 0 && !send_waiting(side)) return close();
    // EPOLLHUP comes unasked when a side is gone for good; what it sent before is still read.
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !side.ended && !read_side(side)) {
      return close();
    }
    if (client_.told_end && server_.told_end) return close();
    if ((events & EPOLLHUP) != 0 && side.ended) proxy_.loop_.forget(side.fd.get());
    interest();
  }

  bool read_side(Side& side) {
    Side& to = other(side);
    std::array<char, 65536> buffer;
    const ssize_t got = recv(side.fd.get(), buffer.data(), buffer.size(), 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    // The idle clock is set at most once a second: bytes come often.
    if (const auto now = EventLoop::Clock::now(); now - rested_ > std::chrono::seconds(1)) {
      rested_ = now;
      rest();
    }
    if (got == 0)
      side.ended = true;
    else
      to.out.append(buffer.data(), static_cast<std::size_t>(got));
    return send_waiting(to);
  }

  // Sends what waits for this side, then the other's end if it came.
  bool send_waiting(Side& side) {
    while (!side.out.empty()) {
      const ssize_t sent = send(side.fd.get(), side.out.data(), side.out.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) return errno == EAGAIN;
      side.out.erase(0, static_cast<std::size_t>(sent));
    }
    if (state_ == State::relay && other(side).ended && !side.told_end) {
      side.told_end = true;
      shutdown(side.fd.get(), SHUT_WR);
    }
    return true;
  }

  void interest() {
    for (Side* side : {&client_, &server_}) {
      const bool room = other(*side).out.size() < proxy_.limits_.waiting_bytes_max;
      proxy_.loop_.change(side->fd.get(), (!side->ended && room ? std::uint32_t{EPOLLIN} : 0U) |
                                              (side->out.empty() ? 0U : std::uint32_t{EPOLLOUT}));
    }
  }

  void refuse(const HttpRefusal& refusal) {
    stop_dialling();
    const std::string body = "nd7: " + refusal.sentence + "\n";
    client_.out = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: text/plain; charset=utf-8\r\n"
                              "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
                              refusal.status, reason_phrase(refusal.status), body.size(), body);
    state_ = State::closing;
    wait(proxy_.limits_.request, [this] { close(); });
    flush_and_close();
  }

  // Ends our half and waits for the client's end: closing with unread input would reset the
  // connection and lose the sentence.
  void flush_and_close() {
    if (!send_waiting(client_)) return close();
    proxy_.loop_.change(client_.fd.get(),
                        EPOLLIN | (client_.out.empty() ? 0U : std::uint32_t{EPOLLOUT}));
    if (client_.out.empty() && !client_.told_end) {
      client_.told_end = true;
      shutdown(client_.fd.get(), SHUT_WR);
    }
    std::array<char, 16384> buffer;
    for (;;) {
      const ssize_t got = recv(client_.fd.get(), buffer.data(), buffer.size(), 0);
      if (got > 0 || (got < 0 && errno == EINTR)) continue;
      if (got < 0 && errno == EAGAIN) return;
      return close();
    }
  }

  Proxy& proxy_;
  State state_ = State::request;
  Side client_, server_;
  std::string request_;
  std::uint16_t from_port_ = 0;
  std::string name_;  // "" when an address was asked for
  std::string label_; // host:port as asked
  std::vector<Address> candidates_;
  std::size_t next_ = 0;
  HttpRefusal failure_{502, "no address"};
  EventLoop::Timer timer_ = 0;
  EventLoop::Clock::time_point rested_{};
};

Proxy::Proxy(EventLoop& loop, Resolver& resolver, Admission& admission, MayConnect may_connect,
             ProxyLimits limits)
    : loop_(loop), resolver_(resolver), admission_(admission), may_connect_(std::move(may_connect)),
      limits_(limits) {}

Proxy::~Proxy() {
  if (listener_) loop_.forget(listener_.get());
}

Result<> Proxy::start() {
  auto listener = listen_on_loopback(false, port_);
  if (!listener) return std::unexpected(listener.error());
  listener_ = std::move(*listener);
  return loop_.watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { on_connection(); });
}

void Proxy::on_connection() {
  while (Fd fd = accept_admitted(listener_.get(), admission_)) {
    if (tunnels_.size() >= limits_.tunnels_max) continue;
    auto tunnel = std::make_shared<Tunnel>(*this, std::move(fd));
    tunnels_[tunnel.get()] = tunnel;
    if (!tunnel->start()) tunnels_.erase(tunnel.get());
  }
}

} // namespace nd7
