#include "core/chain.h"

#include <gtest/gtest.h>

#include <string>

namespace nd7 {
namespace {

TEST(Chain, Blake3KnownAnswers) { // the reference implementation's test vectors, input 0,1,2,..
  EXPECT_EQ(blake3_hex(""), "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
  EXPECT_EQ(blake3_hex(std::string(1, '\0')),
            "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213");
}

TEST(Chain, AnEntryHasThisForm) {
  const SealedEntry e = seal_entry({.session_id = "s\"1",
                                    .seq = 7,
                                    .ts = -5,
                                    .mono = 9,
                                    .host = "h",
                                    .source = "nd7",
                                    .kind = "gap",
                                    .prev = first_link("s\"1"),
                                    .body = "{\"a\":1}"});
  const std::string open = "{\"v\":1,\"session_id\":\"s\\\"1\",\"seq\":7,\"ts\":-5,\"mono\":9,"
                           "\"host\":\"h\",\"source\":\"nd7\",\"kind\":\"gap\",\"prev\":\"" +
                           blake3_hex("s\"1") + "\",\"body\":{\"a\":1}";
  EXPECT_EQ(e.hash, blake3_hex(open + "}"));
  EXPECT_EQ(e.line, open + ",\"hash\":\"" + e.hash + "\"}\n");
}

TEST(Chain, HeadHasOneForm) {
  const std::string hash(64, 'a');
  EXPECT_EQ(parse_head(head_text({12, hash})), (Head{12, hash}));
  for (const std::string& bad :
       {std::string(), "12 " + hash, "012 " + hash + "\n", "-1 " + hash + "\n", " " + hash + "\n",
        "12 " + hash + "\n\n", "12  " + hash + "\n", "99999999999999999999 " + hash + "\n",
        "1 " + std::string(64, 'A') + "\n"}) {
    EXPECT_FALSE(parse_head(bad)) << bad;
  }
}

} // namespace
} // namespace nd7
