#include "core/proxy_setting.h"

#include <gtest/gtest.h>

namespace nd7 {
namespace {

std::string option_for(const std::string& entry, const Policy& policy = {}) {
  const auto notes = proxy_notes({"A=b", entry}, policy);
  if (notes.empty()) return {};
  EXPECT_EQ(notes.size(), 1U);
  const std::size_t at = notes[0].find("nd7 run ");
  EXPECT_NE(at, std::string::npos) << notes[0];
  return notes[0].substr(at + 8, notes[0].rfind(" ...") - at - 8);
}

TEST(ProxySetting, SaysTheOptionThatOpensEachKindOfPlace) {
  EXPECT_EQ(option_for("HTTPS_PROXY=http://10.0.0.5:3128"), "--host 10.0.0.5:3128");
  EXPECT_EQ(option_for("https_proxy=http://10.0.0.5:443/"), "--host 10.0.0.5");
  EXPECT_EQ(option_for("ALL_PROXY=socks5h://proxy.corp"), "--host proxy.corp:1080");
  EXPECT_EQ(option_for("http_proxy=Proxy.Corp.:8080"), "--host proxy.corp:8080");
  EXPECT_EQ(option_for("HTTP_PROXY=http://localhost:8118"), "--port 8118");
  EXPECT_EQ(option_for("HTTP_PROXY=http://127.0.0.1:8118"), "--port 8118");
  EXPECT_EQ(option_for("HTTPS_PROXY=http://[fd00::1]:3128"), "--host '[fd00::1]:3128'");
}

TEST(ProxySetting, NeverRepeatsAPassword) {
  const auto notes = proxy_notes({"HTTPS_PROXY=http://me:se@cret@10.0.0.5:3128"}, {});
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].find("cret"), std::string::npos) << notes[0];
}

TEST(ProxySetting, IsSilentWhereNothingIsNeededOrNothingHelps) {
  EXPECT_EQ(option_for("HTTPS_PROXY="), "");
  EXPECT_EQ(option_for("HTTPS_PROXY=http://"), "");
  EXPECT_EQ(option_for("HTTPS_PROXY=http://host:port"), "");
  EXPECT_EQ(option_for("HTTPS_PROXY=https://proxy.example.com"), "");
  EXPECT_EQ(option_for("HTTPS_PROXY=http://169.254.169.254:80"), ""); // no grant opens it
  EXPECT_EQ(option_for("NO_PROXY=10.0.0.5"), "");
  Policy policy;
  policy.hosts.push_back({"10.0.0.5", 3128, Origin::start_option});
  EXPECT_EQ(option_for("HTTPS_PROXY=http://10.0.0.5:3128", policy), "");
  policy.ports.push_back({8118, Origin::start_option});
  EXPECT_EQ(option_for("HTTPS_PROXY=http://localhost:8118", policy), "");
}

TEST(ProxySetting, SaysEachPlaceOnce) {
  EXPECT_EQ(proxy_notes({"HTTPS_PROXY=http://10.0.0.5:3128", "https_proxy=http://10.0.0.5:3128",
                         "HTTP_PROXY=http://10.0.0.6:3128"},
                        {})
                .size(),
            2U);
}

} // namespace
} // namespace nd7
