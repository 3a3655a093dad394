// tests/vectors/log: one file a fault, made by another program than ours; cases.json says what each
// must be found to be.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/json.h"
#include "core/verify.h"

namespace nd7 {
namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

struct First final : Reporter {
  void fault(const Fault& f) override { found = f; }
  std::optional<Fault> found;
};

TEST(VerifyVectors, EachIsFoundToBeWhatItIs) {
  const std::string directory = ND7_SOURCE_DIR "/tests/vectors/log/";
  const std::string text = content_of(directory + "cases.json");
  const auto document = scan_json_object(text);
  ASSERT_TRUE(document) << document.error().text;
  const auto cases = scan_json_array(document->find("cases"));
  ASSERT_TRUE(cases);
  EXPECT_GE(cases->size(), 20u);
  for (const std::string_view raw : *cases) {
    const auto expected = scan_json_object(raw);
    const std::string name = expected->text("name");
    VerifyOptions options{.session_id = document->text("session_id")};
    if (expected->find("head") != "null") options.head = expected->text("head");
    First first;
    const VerifyResult result =
        verify_log(content_of(directory + name + ".ndjson"), options, first);
    if (expected->find("kind") == "null") {
      EXPECT_FALSE(first.found) << name << ": " << first.found->detail;
      EXPECT_TRUE(result.consistent) << name;
    } else {
      ASSERT_TRUE(first.found) << name;
      EXPECT_EQ(fault_name(first.found->kind), expected->text("kind")) << name;
      EXPECT_EQ(first.found->entry, static_cast<std::uint64_t>(expected->integer("entry"))) << name;
    }
    EXPECT_EQ(result.torn_bytes, static_cast<std::uint64_t>(expected->integer("torn"))) << name;
    EXPECT_TRUE(result.attested.key_id.empty()) << name;
  }
}

} // namespace
} // namespace nd7
