#include "net/dns_server.h"

#include <netinet/in.h>
#include <sys/epoll.h>

#include <array>

#include "net/sockaddr.h"

namespace nd7 {
namespace {

constexpr int kDatagramsPerTurn = 64;
constexpr int kBacklog = 128;
constexpr std::size_t kConnectionsMax = 64;
constexpr std::size_t kQuestionsPerConnectionMax = 16;
constexpr std::size_t kOutputBytesMax = std::size_t{1} << 20;
constexpr std::chrono::seconds kIdle{30};

// A question is short; RFC 1035 allows 512 bytes without EDNS and the options add little.
constexpr std::size_t kQuestionBytesMax = 4096;

struct Datagram {
  SocketAddress from;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(in6_pktinfo))> control{};
  std::size_t control_size = 0;
};

// Turns the address a datagram came to into the source of its answer.
void answer_from_where_it_came(const msghdr& received, Datagram& datagram) {
  msghdr out{};
  out.msg_control = datagram.control.data();
  out.msg_controllen = datagram.control.size();
  for (cmsghdr* h = CMSG_FIRSTHDR(&received); h != nullptr;
       h = CMSG_NXTHDR(const_cast<msghdr*>(&received), h)) {
    cmsghdr* to = CMSG_FIRSTHDR(&out);
    if (h->cmsg_level == IPPROTO_IP && h->cmsg_type == IP_PKTINFO) {
      in_pktinfo info;
      std::memcpy(&info, CMSG_DATA(h), sizeof info);
      info.ipi_ifindex = 0; // ipi_spec_dst holds the address that was asked
      *to = {CMSG_LEN(sizeof info), IPPROTO_IP, IP_PKTINFO};
      std::memcpy(CMSG_DATA(to), &info, sizeof info);
      datagram.control_size = CMSG_SPACE(sizeof info);
    } else if (h->cmsg_level == IPPROTO_IPV6 && h->cmsg_type == IPV6_PKTINFO) {
      // With the device it came by, which a link-local source needs.
      in6_pktinfo info;
      std::memcpy(&info, CMSG_DATA(h), sizeof info);
      *to = {CMSG_LEN(sizeof info), IPPROTO_IPV6, IPV6_PKTINFO};
      std::memcpy(CMSG_DATA(to), &info, sizeof info);
      datagram.control_size = CMSG_SPACE(sizeof info);
    }
  }
}

} // namespace

DnsUdpServer::~DnsUdpServer() {
  *alive_ = false;
  for (const int udp : listeners_) loop_.forget(udp);
}

Result<> DnsUdpServer::listen(int udp) {
  auto watched = loop_.watch(udp, EPOLLIN, [this, udp](std::uint32_t) { on_datagrams(udp); });
  if (watched) listeners_.push_back(udp);
  return watched;
}

void DnsUdpServer::on_datagrams(int udp) {
  std::array<char, kQuestionBytesMax> buffer;
  for (int i = 0; i < kDatagramsPerTurn; ++i) {
    Datagram datagram;
    alignas(cmsghdr) std::array<char, 256> control;
    iovec part{buffer.data(), buffer.size()};
    msghdr message{};
    message.msg_name = datagram.from.get();
    message.msg_namelen = datagram.from.size;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = recvmsg(udp, &message, 0);
    if (got < 0) return;
    if ((message.msg_flags & MSG_TRUNC) != 0) continue;
    datagram.from.size = message.msg_namelen;
    answer_from_where_it_came(message, datagram);
    resolver_.serve(std::string_view(buffer.data(), static_cast<std::size_t>(got)),
                    Resolver::Transport::datagram,
                    [alive = alive_, udp, datagram](const std::string& answer) mutable {
                      if (!*alive) return;
                      iovec out{const_cast<char*>(answer.data()), answer.size()};
                      msghdr reply{};
                      reply.msg_name = datagram.from.get();
                      reply.msg_namelen = datagram.from.size;
                      reply.msg_iov = &out;
                      reply.msg_iovlen = 1;
                      reply.msg_control = datagram.control.data();
                      reply.msg_controllen = datagram.control_size;
                      // A full buffer loses it, as a network would; the asker asks again.
                      (void)!sendmsg(udp, &reply, MSG_NOSIGNAL | MSG_DONTWAIT);
                    });
  }
}

class DnsTcpServer::Connection : public std::enable_shared_from_this<Connection> {
public:
  Connection(DnsTcpServer& server, Fd fd) : server_(server), fd_(std::move(fd)) {}
  ~Connection() {
    server_.loop_.forget(fd_.get());
    server_.loop_.cancel(timer_);
  }

  bool start() {
    rest();
    return server_.loop_
        .watch(fd_.get(), EPOLLIN,
               [this](std::uint32_t events) {
                 const auto held = shared_from_this();
                 if ((events & EPOLLOUT) != 0 && !flush()) return close();
                 if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) on_input();
               })
        .has_value();
  }

private:
  void rest() {
    server_.loop_.cancel(timer_);
    timer_ = server_.loop_.after(kIdle, [this] { close(); });
  }

  void close() { server_.connections_.erase(fd_.get()); }

  void on_input() {
    std::array<char, 16384> buffer;
    const ssize_t got = recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return close();
    input_.append(buffer.data(), static_cast<std::size_t>(got));
    read_questions();
  }

  void read_questions() {
    while (under_way_ < kQuestionsPerConnectionMax && input_.size() >= 2) {
      const std::size_t length = static_cast<std::size_t>(static_cast<unsigned char>(input_[0]))
                                     << 8 |
                                 static_cast<unsigned char>(input_[1]);
      if (length > kQuestionBytesMax) return close();
      if (input_.size() < length + 2) break;
      const std::string question = input_.substr(2, length);
      input_.erase(0, length + 2);
      rest();
      ++under_way_;
      const std::weak_ptr<Connection> self = weak_from_this();
      server_.resolver_.serve(question, Resolver::Transport::stream,
                              [self](const std::string& answer) {
                                if (const auto held = self.lock()) held->answer(answer);
                              });
    }
    interest();
  }

  void answer(const std::string& message) {
    --under_way_;
    output_ += static_cast<char>(message.size() >> 8 & 0xff);
    output_ += static_cast<char>(message.size() & 0xff);
    output_ += message;
    if (output_.size() > kOutputBytesMax || !flush()) return close();
    rest();
    interest();
  }

  bool flush() {
    while (!output_.empty()) {
      const ssize_t sent = send(fd_.get(), output_.data(), output_.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && errno == EAGAIN) break;
      if (sent <= 0) return false;
      output_.erase(0, static_cast<std::size_t>(sent));
    }
    return true;
  }

  // Not reading holds a busy asker back.
  void interest() {
    const bool full = under_way_ >= kQuestionsPerConnectionMax;
    server_.loop_.change(fd_.get(), (full ? 0U : std::uint32_t{EPOLLIN}) |
                                        (output_.empty() ? 0U : std::uint32_t{EPOLLOUT}));
  }

  DnsTcpServer& server_;
  Fd fd_;
  EventLoop::Timer timer_ = 0;
  std::size_t under_way_ = 0;
  std::string input_, output_;
};

DnsTcpServer::~DnsTcpServer() {
  if (listener4_) loop_.forget(listener4_.get());
  if (listener6_) loop_.forget(listener6_.get());
}

Result<> DnsTcpServer::start() {
  auto four = listen_on_loopback(false, port_);
  if (!four) return std::unexpected(four.error());
  listener4_ = std::move(*four);
  // IPv6 may be missing, or the port taken there; AF_INET6 callers can be led to ::ffff:127.0.0.1.
  if (auto six = listen_on_loopback(true, port_)) listener6_ = std::move(*six);
  for (const int fd : {listener4_.get(), listener6_.get()}) {
    if (fd < 0) continue;
    auto watched = loop_.watch(fd, EPOLLIN, [this, fd](std::uint32_t) { on_connection(fd); });
    if (!watched) return watched;
  }
  return {};
}

void DnsTcpServer::on_connection(int listener) {
  while (Fd fd = accept_admitted(listener, admission_)) {
    if (connections_.size() >= kConnectionsMax) continue;
    const int number = fd.get();
    auto connection = std::make_shared<Connection>(*this, std::move(fd));
    connections_[number] = connection;
    if (!connection->start()) connections_.erase(number);
  }
}

Result<Fd> listen_on_loopback(bool v6, std::uint16_t& port) {
  const Address at = *parse_address(v6 ? "::1" : "127.0.0.1", port);
  SocketAddress name(at);
  Fd fd(socket(name.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return os_error("make a loopback listener");
  const int on = 1;
  if (v6) setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (bind(fd.get(), name.get(), name.size) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    return os_error("listen on " + endpoint_text(at));
  }
  name.size = sizeof name.storage;
  if (getsockname(fd.get(), name.get(), &name.size) != 0) return os_error("read a port");
  port = name.address().port;
  return fd;
}

} // namespace nd7
