#include "net/network.h"

#include <cstdlib>

#include "net/admission.h"
#include "net/dns_server.h"
#include "net/event_loop.h"
#include "net/interfaces.h"
#include "net/proxy.h"
#include "net/resolver.h"
#include "os/netns.h"

namespace nd7 {
namespace {

class NetworkImpl final : public Network {
public:
  // Members are destroyed in reverse: servers, resolver, loop, and the namespace last.
  std::unique_ptr<os::ParkedNamespace> namespace_;
  std::string why_not_;
  std::string hint_;
  bool proxy_wanted_ = false;
  std::unique_ptr<MachinePrefixes> prefixes_;
  std::unique_ptr<EventLoop> loop_;
  Admission admission_;
  std::unique_ptr<Resolver> resolver_;
  std::unique_ptr<DnsUdpServer> udp_;
  std::unique_ptr<DnsTcpServer> tcp_;
  std::unique_ptr<Proxy> proxy_;

  bool parked() const override { return namespace_ != nullptr; }
  std::string why_not() const override { return why_not_; }
  std::string repair() const override { return hint_; }

  Result<Fd> park_socket(int domain, int type, int protocol) override {
    if (!namespace_) return os_error("UDP is not available (" + why_not_ + ")", EACCES);
    return namespace_->socket(domain, type, protocol);
  }

  int poll_fd() const override { return loop_->fd(); }
  void on_ready() override { loop_->run_ready(); }
  std::string name_of(const Address& address) const override { return resolver_->name_of(address); }
  std::vector<std::string> names_of(const Address& address) const override {
    return resolver_->names_of(address);
  }
  bool local_machine(const Address& address) override {
    const auto prefixes = prefixes_->current();
    return !prefixes || contains(**prefixes, address);
  }
  std::uint16_t dns_tcp_port() const override { return tcp_->port(); }
  std::uint16_t proxy_port() const override { return proxy_ ? proxy_->port() : std::uint16_t{0}; }
  void admit(std::uint16_t local_port) override { admission_.admit(local_port); }
  int helper_pid() const override { return namespace_ ? namespace_->helper() : 0; }

  std::vector<std::string> environment() const override {
    std::vector<std::string> result;
    if (!parked()) {
      // glibc alone knows this one; it then asks over TCP, which needs no datagrams.
      const char* options = std::getenv("RES_OPTIONS");
      const std::string before =
          options != nullptr && *options != '\0' ? std::string(options) + " " : "";
      result.push_back("RES_OPTIONS=" + before + "use-vc");
    }
    if (proxy_) {
      const std::string url = "http://127.0.0.1:" + std::to_string(proxy_->port());
      for (const char* name : {"HTTPS_PROXY", "https_proxy"}) result.push_back(name + ("=" + url));
      for (const char* name : {"NO_PROXY", "no_proxy"}) {
        result.push_back(std::string(name) + "=localhost,127.0.0.1,::1");
      }
    }
    return result;
  }
};

} // namespace

Result<std::unique_ptr<Network>> Network::start(NetworkPlan plan, NetworkEvents events) {
  auto network = std::make_unique<NetworkImpl>();
  if (plan.try_namespaces) {
    if (auto made = os::ParkedNamespace::start()) {
      network->namespace_ = std::move(*made);
    } else {
      network->why_not_ = made.error().text;
      network->hint_ = made.error().hint;
    }
  } else {
    network->why_not_ = "switched off";
  }
  auto loop = EventLoop::make();
  if (!loop) return std::unexpected(loop.error());
  network->loop_ = std::move(*loop);

  auto prefixes = MachinePrefixes::open();
  if (!prefixes) return std::unexpected(prefixes.error());
  network->prefixes_ = std::move(*prefixes);

  Resolver::Settings settings;
  settings.inside = [&machine = *network->prefixes_] { return machine.current(); };
  settings.upstream = std::move(plan.upstream);
  settings.dns_only_names = std::move(plan.dns_only_names);
  settings.name_granted = std::move(events.name_granted);
  network->resolver_ = std::make_unique<Resolver>(*network->loop_, std::move(settings),
                                                  std::move(events.on_resolve));
  network->udp_ = std::make_unique<DnsUdpServer>(*network->loop_, *network->resolver_);
  if (network->namespace_) {
    for (const int udp : {network->namespace_->udp4(), network->namespace_->udp6()}) {
      if (udp < 0) continue;
      if (auto heard = network->udp_->listen(udp); !heard) return std::unexpected(heard.error());
    }
  }
  network->tcp_ =
      std::make_unique<DnsTcpServer>(*network->loop_, *network->resolver_, network->admission_);
  if (auto started = network->tcp_->start(); !started) return std::unexpected(started.error());
  if (!network->namespace_ || plan.proxy) {
    network->proxy_ = std::make_unique<Proxy>(*network->loop_, *network->resolver_,
                                              network->admission_, std::move(events.may_connect));
    if (auto started = network->proxy_->start(); !started) return std::unexpected(started.error());
  }
  return network;
}

} // namespace nd7
