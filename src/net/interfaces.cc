#include "net/interfaces.h"

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "net/network.h"
#include "os/netlink.h"
#include "os/sock_diag.h"

namespace nd7 {
namespace {

std::optional<Address> address_from(unsigned char family, std::string_view data) {
  const std::size_t size = family == AF_INET6 ? 16 : 4;
  if ((family != AF_INET && family != AF_INET6) || data.size() != size) return std::nullopt;
  Address address;
  address.v6 = family == AF_INET6;
  std::memcpy(address.bytes.data(), data.data(), size);
  return address;
}

std::string device_name(unsigned index) {
  char name[IF_NAMESIZE];
  return if_indextoname(index, name) != nullptr ? std::string(name) : std::string("a device");
}

unsigned all_bits(const Address& address) {
  return address.v6 ? 128 : 32;
}

Result<> add_addresses(std::vector<MachinePrefix>& list) {
  ifaddrmsg every{};
  every.ifa_family = AF_UNSPEC;
  return os::netlink_ask(NETLINK_ROUTE, os::NetlinkRequest(RTM_GETADDR, NLM_F_DUMP, every),
                         [&](const os::NetlinkMessage& m) {
                           const auto body = m.body<ifaddrmsg>();
                           if (m.type != RTM_NEWADDR || !body) return;
                           const std::string device = device_name(body->ifa_index);
                           const auto add = [&](std::string_view data, const std::string& what) {
                             if (const auto a = address_from(body->ifa_family, data)) {
                               list.push_back({{*a, all_bits(*a)}, what + " (" + device + ")"});
                             }
                           };
                           m.attributes(sizeof *body,
                                        [&](std::uint16_t type, std::string_view data) {
                                          // On a point-to-point link IFA_ADDRESS is the far end and
                                          // IFA_LOCAL our own.
                                          if (type == IFA_LOCAL)
                                            add(data, "an address of this machine");
                                          if (type == IFA_ADDRESS)
                                            add(data, "an address at this machine");
                                        });
                         });
}

// A route of several next hops (rtnexthop headers, each with attributes): is one of them a device
// alone?
bool has_hop_without_gateway(std::string_view hops) {
  while (hops.size() >= sizeof(rtnexthop)) {
    rtnexthop hop;
    std::memcpy(&hop, hops.data(), sizeof hop);
    if (hop.rtnh_len < sizeof hop || hop.rtnh_len > hops.size()) return true; // unread: be careful
    bool gateway = false;
    os::NetlinkMessage{0, hops.substr(0, hop.rtnh_len)}.attributes(
        sizeof hop, [&](std::uint16_t type, std::string_view) {
          if (type == RTA_GATEWAY || type == RTA_VIA) gateway = true;
        });
    if (!gateway) return true;
    hops.remove_prefix(std::min<std::size_t>((hop.rtnh_len + 3U) & ~3U, hops.size()));
  }
  return false;
}

Result<> add_routes(std::vector<MachinePrefix>& list) {
  rtmsg every{};
  every.rtm_family = AF_UNSPEC;
  return os::netlink_ask(
      NETLINK_ROUTE, os::NetlinkRequest(RTM_GETROUTE, NLM_F_DUMP, every),
      [&](const os::NetlinkMessage& m) {
        const auto body = m.body<rtmsg>();
        if (m.type != RTM_NEWROUTE || !body) return;
        // Local routes beside the addresses make whole prefixes ours ("AnyIP").
        const bool ours = body->rtm_type == RTN_LOCAL || body->rtm_type == RTN_ANYCAST;
        if (!ours && body->rtm_type != RTN_UNICAST) return;
        if (body->rtm_dst_len <= 1) return; // a default route, or half of one
        if ((body->rtm_flags & RTM_F_CLONED) != 0) return;
        std::optional<Address> to;
        unsigned device = 0;
        bool gateway = false;
        m.attributes(sizeof *body, [&](std::uint16_t type, std::string_view data) {
          if (type == RTA_DST) to = address_from(body->rtm_family, data);
          if (type == RTA_GATEWAY || type == RTA_VIA) gateway = true;
          if (type == RTA_MULTIPATH) gateway = !has_hop_without_gateway(data);
          if (type == RTA_OIF && data.size() == sizeof device) {
            std::memcpy(&device, data.data(), sizeof device);
          }
        });
        if (!to || gateway) return;
        list.push_back({{*to, body->rtm_dst_len},
                        (ours ? "an address of this machine (" + device_name(device) + ")"
                              : "a network connected to " + device_name(device))});
      });
}

} // namespace

Result<std::vector<MachinePrefix>> machine_prefix_list() {
  std::vector<MachinePrefix> list;
  if (auto added = add_addresses(list); !added) return std::unexpected(added.error());
  if (auto added = add_routes(list); !added) return std::unexpected(added.error());
  return list;
}

Result<std::vector<Prefix>> machine_prefixes() {
  auto list = machine_prefix_list();
  if (!list) return std::unexpected(list.error());
  std::vector<Prefix> result;
  for (const MachinePrefix& row : *list) result.push_back(row.prefix);
  return result;
}

Result<std::unique_ptr<MachinePrefixes>> MachinePrefixes::open() {
  std::unique_ptr<MachinePrefixes> result(new MachinePrefixes);
  result->changes_ = Fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  sockaddr_nl groups{};
  groups.nl_family = AF_NETLINK;
  // Links too: IPv4 routes that go with one are not announced one by one.
  groups.nl_groups =
      RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE;
  if (!result->changes_ || bind(result->changes_.get(), reinterpret_cast<const sockaddr*>(&groups),
                                sizeof groups) != 0) {
    return os_error("watch the network's changes");
  }
  return result;
}

Result<std::shared_ptr<const std::vector<Prefix>>> MachinePrefixes::current() {
  const std::scoped_lock lock(mutex_);
  // What is announced after this is seen by the next look.
  for (;;) {
    char message[256]; // the rest of it is dropped; that something changed is all there is to know
    const ssize_t got = recv(changes_.get(), message, sizeof message, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    known_ = nullptr;
    if (got < 0 && errno != ENOBUFS) return os_error("watch the network's changes");
  }
  if (known_ == nullptr) {
    auto read = machine_prefixes();
    if (!read) return std::unexpected(read.error());
    known_ = std::make_shared<const std::vector<Prefix>>(std::move(*read));
  }
  return known_;
}

Result<std::uint64_t> tcp_listener_inode(const Address& address) {
  auto found = os::tcp_listener(address);
  if (!found) return std::unexpected(found.error());
  return *found ? (*found)->inode : std::uint64_t{0};
}

} // namespace nd7
