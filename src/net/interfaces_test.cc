#include "net/interfaces.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <thread>

#include "net/network.h"

namespace nd7 {
namespace {

TEST(Interfaces, ThisMachineHasAtLeastItsLoopback) {
  const auto prefixes = machine_prefixes();
  ASSERT_TRUE(prefixes) << prefixes.error().text;
  EXPECT_TRUE(contains(*prefixes, *parse_address("127.0.0.1")));
}

// A network of known shape, in a namespace of the test's own (a thread's, so it goes with it).
std::string said_in_namespace(const std::vector<std::string>& commands) {
  std::string problem;
  std::thread([&] {
    if (unshare(CLONE_NEWNET) != 0) {
      problem = "cannot make a network namespace";
      return;
    }
    for (const std::string& command : commands) {
      if (std::system((command + " 2>&1").c_str()) != 0) {
        problem = "cannot set up: " + command;
        return;
      }
    }
    const auto list = machine_prefix_list();
    if (!list) {
      problem = "error: " + list.error().text;
      return;
    }
    for (const MachinePrefix& row : *list) {
      problem += address_text(row.prefix.base) + "/" + std::to_string(row.prefix.bits) + " " +
                 row.what + "\n";
    }
  }).join();
  return problem;
}

TEST(Interfaces, OwnAddressesAndConnectedNetworksButNotWhatLiesBehindAGateway) {
  const std::string said = said_in_namespace(
      {"ip link set lo up", "ip link add d0 type veth peer name d1", "ip link set d1 up",
       "ip link set d0 up", "ip addr add 93.184.216.34/24 dev d0",
       "ip -6 addr add 2606:2800::5/64 dev d0 nodad",
       "ip addr add 198.51.100.1 peer 198.51.100.2 dev d0", "ip route add default via 93.184.216.1",
       "ip route add 8.8.0.0/16 via 93.184.216.1", "ip route add 9.9.0.0/16 dev d0",
       "ip route add 0.0.0.0/1 dev d0", "ip route add local 7.7.0.0/16 dev lo",
       "ip route add 6.6.0.0/16 nexthop dev d0 weight 1 nexthop via 93.184.216.1 weight 1",
       "ip route add 5.5.0.0/16 nexthop via 93.184.216.1 weight 1 nexthop via 93.184.216.2 weight "
       "1",
       "ip route add 4.4.0.0/16 dev d0 table 77"});
  if (said.starts_with("cannot")) GTEST_SKIP() << said;
  const auto has = [&](const char* text) { return said.find(text) != std::string::npos; };
  EXPECT_TRUE(has("93.184.216.34/32 an address of this machine (d0)")) << said;
  EXPECT_TRUE(has("93.184.216.0/24 a network connected to d0")) << said;
  EXPECT_TRUE(has("2606:2800::5/128")) << said;
  EXPECT_TRUE(has("2606:2800::/64 a network connected to d0")) << said;
  EXPECT_TRUE(has("198.51.100.1/32")) << said;
  EXPECT_TRUE(has("198.51.100.2/32")) << said;
  EXPECT_TRUE(has("9.9.0.0/16")) << said;
  EXPECT_TRUE(has("7.7.0.0/16 an address of this machine")) << said;
  EXPECT_TRUE(has("6.6.0.0/16")) << said;
  EXPECT_TRUE(has("4.4.0.0/16")) << said;
  EXPECT_FALSE(has("8.8.0.0/16")) << said;
  EXPECT_FALSE(has("5.5.0.0/16")) << said;
  EXPECT_FALSE(has("0.0.0.0/")) << said;
}

TEST(Interfaces, AChangeIsSeenByTheNextLook) {
  std::string said;
  std::thread([&] {
    if (unshare(CLONE_NEWNET) != 0) {
      said = "cannot make a network namespace";
      return;
    }
    auto watch = MachinePrefixes::open();
    if (!watch) {
      said = watch.error().text;
      return;
    }
    const Address address = *parse_address("93.184.216.34");
    const auto is_ours = [&] { return contains(**(*watch)->current(), address); };
    const auto run = [](const char* command) {
      if (std::system(command) != 0) std::abort();
    };
    said = is_ours() ? "1" : "0";
    run("ip addr add 93.184.216.34/32 dev lo && ip link set lo up");
    said += is_ours() ? "1" : "0";
    said += *(*watch)->current() == *(*watch)->current() ? "same" : "new";
    run("ip addr del 93.184.216.34/32 dev lo");
    said += is_ours() ? "1" : "0";
    run("ip route add 93.184.216.0/24 dev lo");
    said += is_ours() ? "1" : "0";
    run("ip link set lo down"); // its routes go with it, unannounced
    said += is_ours() ? "1" : "0";
  }).join();
  if (said.starts_with("cannot")) GTEST_SKIP() << said;
  EXPECT_EQ(said, "01same010");
}

} // namespace
} // namespace nd7
