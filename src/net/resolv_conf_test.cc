#include "net/resolv_conf.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "net/fake_dns.h"
#include "net/upstream.h"

namespace nd7 {
namespace {

std::vector<std::string> servers_of(std::string_view text) {
  std::vector<std::string> result;
  for (const UpstreamServer& s : parse_resolv_conf(text))
    result.push_back(endpoint_text(s.address));
  return result;
}

using Servers = std::vector<std::string>;

TEST(ResolvConf, ReadsNameserverLinesAsGlibcDoes) {
  EXPECT_EQ(servers_of("# comment\nsearch corp.test\nnameserver 127.0.0.53\noptions edns0\n"),
            Servers{"127.0.0.53:53"});
  EXPECT_EQ(servers_of("nameserver\t9.9.9.9 # quad9\nnameserver 2620:fe::fe\n"),
            (Servers{"9.9.9.9:53", "[2620:fe::fe]:53"}));
  EXPECT_EQ(servers_of("nameserver 1.1.1.1\r\nnameserver 1.0.0.1"),
            (Servers{"1.1.1.1:53", "1.0.0.1:53"}));
  EXPECT_EQ(
      servers_of(
          " nameserver 1.1.1.1\nnameserver1.1.1.1\nnameserver nonsense\n#nameserver 8.8.8.8\n"),
      Servers{});
  EXPECT_EQ(
      servers_of("nameserver 1.1.1.1\nnameserver 1.1.1.2\nnameserver 1.1.1.3\nnameserver 1.1.1.4\n")
          .size(),
      3U);
  EXPECT_EQ(servers_of(""), Servers{});
}

TEST(ResolvConf, AZoneIsAnInterfaceThatExists) {
  const auto servers = parse_resolv_conf("nameserver fe80::1%lo\nnameserver fe80::2%nosuchdev0\n");
  ASSERT_EQ(servers.size(), 1U);
  EXPECT_EQ(servers[0].scope, if_nametoindex("lo"));
}

class ConfFile : public testing::Test {
protected:
  ConfFile()
      : path_((std::filesystem::temp_directory_path() / ("nd7-resolv-" + std::to_string(getpid())))
                  .string()) {}
  ~ConfFile() override { std::filesystem::remove(path_); }
  void write(const std::string& text) { std::ofstream(path_, std::ios::trunc) << text; }
  std::string path_;
};

TEST_F(ConfFile, IsFollowed) {
  write("nameserver 1.1.1.1\n");
  ResolvConf conf(path_);
  ASSERT_EQ(conf.servers().size(), 1U);
  write("nameserver 1.1.1.1\nnameserver 9.9.9.9\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(1050));
  EXPECT_EQ(conf.servers().size(), 2U);
  std::filesystem::remove(path_);
  std::this_thread::sleep_for(std::chrono::milliseconds(1050));
  EXPECT_TRUE(conf.servers().empty());
}

TEST_F(ConfFile, WithoutServersEveryQuestionFailsAndSaysWhy) {
  write("search corp.test\n");
  auto loop = std::move(*EventLoop::make());
  Upstream upstream(*loop, {}, {}, path_);
  std::string said;
  upstream.ask(*make_dns_query("a.test", dns::kA), [&](Result<Upstream::Answer> answer) {
    said = answer ? "answered" : answer.error().text;
  });
  EXPECT_TRUE(run_until(*loop, [&] { return !said.empty(); }));
  EXPECT_EQ(said, "no resolver is configured");
}

} // namespace
} // namespace nd7
