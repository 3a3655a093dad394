#include "net/network.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cstdlib>

#include "net/fake_dns.h"

namespace nd7 {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

bool pump(Network& network, const std::function<bool()>& done,
          std::chrono::milliseconds limit = 5s) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    pollfd p{network.poll_fd(), POLLIN, 0};
    poll(&p, 1, 20);
    network.on_ready();
  }
  return true;
}

FakeDns::Script example_zone() {
  return FakeDns::zone({{"example.com", {"93.184.216.34"}}, {"local.test", {"127.0.0.1"}}});
}

std::string question(const char* name, std::uint16_t id = 7) {
  return make_dns_question(id, *make_dns_query(name, dns::kA));
}

struct Datagram {
  std::string bytes, from;
};

std::optional<Datagram> receive(Network& network, const Fd& fd, std::chrono::milliseconds limit) {
  std::optional<Datagram> result;
  pump(
      network,
      [&] {
        std::array<char, 2048> buffer;
        SocketAddress from;
        const ssize_t got =
            recvfrom(fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT, from.get(), &from.size);
        if (got < 0) return false;
        result = Datagram{std::string(buffer.data(), static_cast<std::size_t>(got)),
                          endpoint_text(from.address())};
        return true;
      },
      limit);
  return result;
}

// Datagrams to any address:53 are answered from that address, others vanish; empty when it holds.
std::string check_parked_resolver() {
  FakeDns fake(example_zone());
  std::vector<ResolveRecord> records;
  NetworkPlan plan;
  plan.upstream = {fake.address()};
  auto started =
      Network::start(plan, {[&](const ResolveRecord& r) { records.push_back(r); }, {}, {}});
  if (!started) return started.error().text;
  Network& network = **started;
  if (!network.parked()) return "not parked: " + network.why_not();
  if (!network.environment().empty()) return "environment though parked";
  if (network.proxy_port() != 0) return "proxy though parked";
  for (const char* server :
       {"8.8.8.8", "127.0.0.53", "192.168.7.7", "2620:fe::fe", "fe80::1", "::1"}) {
    const Address address = *parse_address(server, 53);
    const SocketAddress to(address, address_text(address).starts_with("fe80") ? 1 : 0);
    auto fd = network.park_socket(to.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (!fd) return fd.error().text;
    const std::string q = question("example.com");
    // Connected, as glibc does: then the kernel drops an answer from elsewhere.
    if (connect(fd->get(), to.get(), to.size) != 0) return std::string("connect ") + server;
    if (send(fd->get(), q.data(), q.size(), 0) < 0) return std::string("send to ") + server;
    const auto got = receive(network, *fd, 2s);
    if (!got) return std::string("no answer from ") + server;
    if (got->from != endpoint_text(address))
      return std::string(server) + " answered as " + got->from;
    const auto answer = parse_dns_answer(got->bytes);
    if (!answer || answer->answers.size() != 1) return std::string("bad answer from ") + server;
  }
  if (fake.questions() != 1) return "not cached";
  if (records.size() != 6) return "not recorded";
  auto other = network.park_socket(AF_INET, SOCK_DGRAM, 0);
  for (const std::uint16_t port : {std::uint16_t{54}, std::uint16_t{443}, fake.address().port}) {
    const SocketAddress to(*parse_address("127.0.0.1", port));
    const std::string q = question("stray.test");
    (void)!sendto(other->get(), q.data(), q.size(), 0, to.get(), to.size);
    if (receive(network, *other, 100ms)) return "an answer from another port";
  }
  if (fake.questions() != 1) return "a datagram reached the host's network";
  if (network.name_of(*parse_address("93.184.216.34")) != "example.com") return "not pinned";
  return {};
}

std::string as_user(uid_t uid, std::string (*body)()) {
  int pipe_fds[2];
  if (pipe(pipe_fds) != 0) return "pipe";
  const pid_t child = fork();
  if (child == 0) {
    const bool changed =
        uid == getuid() || (setgroups(0, nullptr) == 0 && setgid(uid) == 0 && setuid(uid) == 0);
    const std::string said = changed ? body() : "cannot become another user";
    (void)!write(pipe_fds[1], said.data(), said.size());
    _exit(0);
  }
  close(pipe_fds[1]);
  std::string said;
  std::array<char, 256> buffer;
  for (ssize_t n = 0; (n = read(pipe_fds[0], buffer.data(), buffer.size())) > 0;) {
    said.append(buffer.data(), static_cast<std::size_t>(n));
  }
  close(pipe_fds[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? said : "child died: " + said;
}

TEST(Network, AnswersOnPort53OfEveryAddressAndNowhereElse) {
  EXPECT_EQ(as_user(getuid(), check_parked_resolver), "");
}

TEST(Network, TheSameForAnOrdinaryUser) {
  if (getuid() != 0) GTEST_SKIP() << "already an ordinary user";
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer's own thread forbids unshare(CLONE_NEWUSER)";
#endif
  EXPECT_EQ(as_user(54321, check_parked_resolver), "");
}

Fd connect_to(std::uint16_t port, Network* admit_at, const char* host = "127.0.0.1") {
  const SocketAddress to(*parse_address(host, port));
  Fd fd(socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  SocketAddress own(*parse_address(host));
  EXPECT_EQ(bind(fd.get(), own.get(), own.size), 0);
  own.size = sizeof own.storage;
  EXPECT_EQ(getsockname(fd.get(), own.get(), &own.size), 0);
  if (admit_at != nullptr) admit_at->admit(own.address().port);
  EXPECT_EQ(connect(fd.get(), to.get(), to.size), 0) << strerror(errno);
  return fd;
}

// Everything that comes until the other side ends or `enough` has come.
std::string read_all(Network& network, const Fd& fd, std::size_t enough = SIZE_MAX,
                     std::chrono::milliseconds limit = 5s) {
  std::string result;
  pump(
      network,
      [&] {
        std::array<char, 65536> buffer;
        for (;;) {
          const ssize_t got = recv(fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
          if (got < 0 && errno == EAGAIN) return result.size() >= enough;
          if (got <= 0) return true;
          result.append(buffer.data(), static_cast<std::size_t>(got));
        }
      },
      limit);
  return result;
}

void write_all(Network& network, const Fd& fd, std::string_view bytes) {
  pump(network, [&] {
    const ssize_t sent = send(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
    return bytes.empty();
  });
}

std::string framed(const std::string& message) {
  return std::string{static_cast<char>(message.size() >> 8),
                     static_cast<char>(message.size() & 0xff)} +
         message;
}

class WithoutNamespaces : public testing::Test {
protected:
  WithoutNamespaces() : fake_(example_zone()) { start(); }

  void start(std::vector<std::string> dns_only_names = {}) {
    NetworkPlan plan;
    plan.upstream = {fake_.address()};
    plan.try_namespaces = false;
    plan.dns_only_names = std::move(dns_only_names);
    network_ = std::move(*Network::start(
        plan, {[this](const ResolveRecord& r) { records_.push_back(r); },
               [this](const Address& address, const std::string& name, std::uint16_t from_port) {
                 EXPECT_NE(from_port, 0);
                 asked_.push_back(name + " " + endpoint_text(address));
                 return may_ ? may_(address) : std::string();
               },
               [this](const std::string& name) { return name == granted_; }}));
  }

  std::string request(const std::string& target) {
    const Fd fd = connect_to(network_->proxy_port(), network_.get());
    write_all(*network_, fd, "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n");
    return read_all(*network_, fd);
  }

  FakeDns fake_;
  std::vector<ResolveRecord> records_;
  std::vector<std::string> asked_;
  std::function<std::string(const Address&)> may_;
  std::string granted_;
  std::unique_ptr<Network> network_;
};

TEST_F(WithoutNamespaces, SaysSoAndMakesNoUdpSocket) {
  EXPECT_FALSE(network_->parked());
  EXPECT_EQ(network_->why_not(), "switched off");
  const auto fd = network_->park_socket(AF_INET, SOCK_DGRAM, 0);
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().os_errno, EACCES);
}

TEST_F(WithoutNamespaces, TheEnvironmentLeadsProgramsToTheProxyAndToTcp) {
  unsetenv("RES_OPTIONS");
  const std::string url = "=http://127.0.0.1:" + std::to_string(network_->proxy_port());
  EXPECT_EQ(network_->environment(),
            (std::vector<std::string>{"RES_OPTIONS=use-vc", "HTTPS_PROXY" + url,
                                      "https_proxy" + url, "NO_PROXY=localhost,127.0.0.1,::1",
                                      "no_proxy=localhost,127.0.0.1,::1"}));
  setenv("RES_OPTIONS", "ndots:2", 1);
  EXPECT_EQ(network_->environment().at(0), "RES_OPTIONS=ndots:2 use-vc");
  unsetenv("RES_OPTIONS");
}

TEST_F(WithoutNamespaces, DnsOverTcpAnswersSeveralQuestionsOfOneConnection) {
  const Fd fd = connect_to(network_->dns_tcp_port(), network_.get());
  const std::string questions =
      framed(question("example.com", 1)) + framed(question("local.test", 2));
  write_all(*network_, fd, questions.substr(0, 1)); // in pieces
  write_all(*network_, fd, questions.substr(1, 20));
  write_all(*network_, fd, questions.substr(21));
  std::map<int, std::size_t> answers;
  std::string got;
  pump(*network_, [&] {
    got += read_all(*network_, fd, 1, 100ms);
    while (got.size() >= 2) {
      const std::size_t length = static_cast<std::size_t>(static_cast<unsigned char>(got[0])) << 8 |
                                 static_cast<unsigned char>(got[1]);
      if (got.size() < length + 2) break;
      const auto answer = parse_dns_answer(std::string_view(got).substr(2, length));
      EXPECT_TRUE(answer);
      answers[answer->id] = answer->answers.size();
      got.erase(0, length + 2);
    }
    return answers.size() == 2;
  });
  EXPECT_EQ(answers, (std::map<int, std::size_t>{{1, 1}, {2, 0}}));
}

TEST_F(WithoutNamespaces, DnsOverTcpWorksOnIpv6Loopback) {
  const Fd fd = connect_to(network_->dns_tcp_port(), network_.get(), "::1");
  write_all(*network_, fd, framed(question("example.com")));
  EXPECT_TRUE(parse_dns_answer(read_all(*network_, fd, 30).substr(2)));
}

TEST_F(WithoutNamespaces, StrangersAreNotServed) {
  const Fd dns = connect_to(network_->dns_tcp_port(), nullptr);
  write_all(*network_, dns, framed(question("example.com")));
  EXPECT_EQ(read_all(*network_, dns), "");
  const Fd proxy = connect_to(network_->proxy_port(), nullptr);
  write_all(*network_, proxy, "CONNECT example.com:443 HTTP/1.1\r\n\r\n");
  EXPECT_EQ(read_all(*network_, proxy), "");
  EXPECT_TRUE(records_.empty());
  EXPECT_TRUE(asked_.empty());
}

TEST_F(WithoutNamespaces, OversizedQuestionsCloseTheConnection) {
  const Fd fd = connect_to(network_->dns_tcp_port(), network_.get());
  write_all(*network_, fd, "\xff\xff");
  EXPECT_EQ(read_all(*network_, fd), "");
}

TEST_F(WithoutNamespaces, TheProxyAsksForTheVeryAddressAndRefusesWithASentence) {
  may_ = [](const Address&) { return std::string("only port 443 may be reached"); };
  const std::string said = request("example.com:80");
  EXPECT_TRUE(said.starts_with("HTTP/1.1 403 Forbidden\r\n")) << said;
  EXPECT_NE(said.find("nd7 refused the connection to example.com:80: only port 443"),
            std::string::npos);
  EXPECT_EQ(asked_, std::vector<std::string>{"example.com 93.184.216.34:80"});
}

TEST_F(WithoutNamespaces, TheProxyRefusesNamesThatPointInsideAndUnknownOnes) {
  const std::string inside = request("local.test:443");
  EXPECT_TRUE(inside.starts_with("HTTP/1.1 502 ")) << inside;
  EXPECT_NE(inside.find("points at 127.0.0.1 (loopback)"), std::string::npos) << inside;
  EXPECT_NE(request("nowhere.test:443").find("does not resolve"), std::string::npos);
  EXPECT_TRUE(asked_.empty());
}

TEST_F(WithoutNamespaces, TheProxyRefusesMalformedRequests) {
  const Fd fd = connect_to(network_->proxy_port(), network_.get());
  write_all(*network_, fd, "CONNECT evil.test\0.example.com:443 HTTP/1.1\r\n\r\n"s);
  EXPECT_TRUE(read_all(*network_, fd).starts_with("HTTP/1.1 400 "));
  const Fd get = connect_to(network_->proxy_port(), network_.get());
  write_all(*network_, get, "GET http://example.com/ HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(read_all(*network_, get).starts_with("HTTP/1.1 403 "));
  const Fd flood = connect_to(network_->proxy_port(), network_.get());
  write_all(*network_, flood, "CONNECT example.com:443 HTTP/1.1\r\nX: " + std::string(9000, 'x'));
  EXPECT_TRUE(read_all(*network_, flood).starts_with("HTTP/1.1 431 "));
  EXPECT_TRUE(asked_.empty());
}

// A TCP server that sends back what it gets and ends when the client does.
class Echo {
public:
  Echo() : listener_(std::move(*listen_on_loopback(false, port_))) {
    thread_ = std::thread([this] {
      pollfd p{listener_.get(), POLLIN, 0};
      if (poll(&p, 1, 10'000) != 1) return;
      const Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      std::array<char, 65536> buffer;
      for (;;) {
        const ssize_t got = recv(fd.get(), buffer.data(), buffer.size(), 0);
        if (got <= 0) return;
        for (ssize_t at = 0; at < got;) {
          const ssize_t sent =
              send(fd.get(), buffer.data() + at, static_cast<std::size_t>(got - at), MSG_NOSIGNAL);
          if (sent < 0) return;
          at += sent;
        }
      }
    });
  }
  ~Echo() { thread_.join(); }
  std::uint16_t port() const { return port_; }

private:
  std::uint16_t port_ = 0;
  Fd listener_;
  std::thread thread_;
};

TEST_F(WithoutNamespaces, TheProxyRelaysEveryByteBothWaysAndTheEndsToo) {
  Echo echo;
  granted_ = "local.test"; // so that the name may lead to the test's own server
  const Fd fd = connect_to(network_->proxy_port(), network_.get());
  std::string sent(3'000'000, '\0');
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 31 >> 3);
  // The first bytes come right behind the request, as some clients do.
  write_all(*network_, fd,
            "CONNECT local.test:" + std::to_string(echo.port()) + " HTTP/1.1\r\n\r\n" +
                sent.substr(0, 100));
  std::thread writer([&] {
    std::string_view rest = std::string_view(sent).substr(100);
    while (!rest.empty()) {
      const ssize_t n = send(fd.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      rest.remove_prefix(static_cast<std::size_t>(n));
    }
    shutdown(fd.get(), SHUT_WR);
  });
  const std::string got = read_all(*network_, fd, SIZE_MAX, 20s);
  writer.join();
  const std::string head = "HTTP/1.1 200 Connection established\r\n\r\n";
  ASSERT_TRUE(got.starts_with(head));
  EXPECT_EQ(got.size() - head.size(), sent.size());
  EXPECT_TRUE(got.substr(head.size()) == sent);
  EXPECT_EQ(asked_,
            std::vector<std::string>{"local.test 127.0.0.1:" + std::to_string(echo.port())});
}

// A server that is gone for good while its last bytes wait for a slow client: they arrive, and the
// loop sleeps meanwhile.
TEST_F(WithoutNamespaces, TheProxyHoldsTheLastBytesForASlowClientWithoutSpinning) {
  std::uint16_t port = 0;
  const Fd listener = std::move(*listen_on_loopback(false, port));
  const std::size_t size = 6'000'000;
  std::thread server([&] {
    pollfd p{listener.get(), POLLIN, 0};
    if (poll(&p, 1, 10'000) != 1) return;
    const Fd fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    char byte = 0;
    while (recv(fd.get(), &byte, 1, 0) > 0) {
    }
    const std::string bytes(size, 'x');
    for (std::size_t at = 0; at < size;) {
      const ssize_t sent = send(fd.get(), bytes.data() + at, size - at, MSG_NOSIGNAL);
      if (sent < 0) return;
      at += static_cast<std::size_t>(sent);
    }
  });
  const Fd fd = connect_to(network_->proxy_port(), network_.get());
  const int small = 65536; // so that the bytes wait in the proxy and not here
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  write_all(*network_, fd,
            "CONNECT 127.0.0.1:" + std::to_string(port) + " HTTP/1.1\r\n\r\nrequest");
  shutdown(fd.get(), SHUT_WR);
  std::size_t got = 0;
  int spinning = 0;
  // Piece by piece, so that the server's end comes while something waits; between the pieces the
  // loop must come to rest.
  for (bool ended = false; !ended && got < 2 * size;) {
    std::array<char, 65536> buffer;
    const ssize_t n = recv(fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n > 0) got += static_cast<std::size_t>(n);
    ended = n == 0;
    int awake = 0;
    for (int i = 0; i < 3000; ++i) {
      pollfd p{network_->poll_fd(), POLLIN, 0};
      awake = poll(&p, 1, 1) > 0 ? awake + 1 : 0;
      if (awake == 0 && i > 2) break;
      network_->on_ready();
    }
    if (awake > 2000) ++spinning;
  }
  EXPECT_EQ(spinning, 0);
  server.join();
  EXPECT_EQ(got, size + "HTTP/1.1 200 Connection established\r\n\r\n"s.size());
}

TEST_F(WithoutNamespaces, AHostThatDoesNotAnswerIs502) {
  std::uint16_t port = 0;
  { const Fd closed = std::move(*listen_on_loopback(false, port)); }
  const std::string said = request("127.0.0.1:" + std::to_string(port));
  EXPECT_TRUE(said.starts_with("HTTP/1.1 502 ")) << said;
  EXPECT_NE(said.find("Connection refused"), std::string::npos) << said;
}

TEST_F(WithoutNamespaces, AnAdmissionIsGoodForOneConnection) {
  Fd first = connect_to(network_->dns_tcp_port(), network_.get());
  SocketAddress own;
  getsockname(first.get(), own.get(), &own.size);
  write_all(*network_, first, framed(question("example.com")));
  EXPECT_FALSE(read_all(*network_, first, 30).empty());
  const linger now{1, 0}; // a reset leaves no TIME_WAIT, so that the port can be had again
  setsockopt(first.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  first.reset();
  const SocketAddress to(*parse_address("127.0.0.1", network_->dns_tcp_port()));
  const Fd second(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(second.get(), own.get(), own.size), 0) << strerror(errno);
  ASSERT_EQ(connect(second.get(), to.get(), to.size), 0);
  write_all(*network_, second, framed(question("example.com")));
  EXPECT_EQ(read_all(*network_, second), "");
}

TEST(Network, ListenerInodeOfOneAddress) {
  std::uint16_t port = 0;
  const Fd listener = std::move(*listen_on_loopback(false, port));
  struct stat s {};
  ASSERT_EQ(fstat(listener.get(), &s), 0);
  EXPECT_EQ(tcp_listener_inode(*parse_address("127.0.0.1", port)).value(), s.st_ino);
  EXPECT_EQ(tcp_listener_inode(*parse_address("127.0.0.2", port)).value(), 0U);
}

} // namespace
} // namespace nd7
