#include "base/json.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace nd7 {
namespace {

std::string error_of(std::string_view text, const JsonLimits& limits = {}) {
  auto object = scan_json_object(text, limits);
  return object ? "" : object.error().text;
}

TEST(JsonScan, YieldsMembersAsTheyStandInTheInput) {
  const auto object =
      scan_json_object(" {\"a\" : 0.1000, \"b\":[1, 2 ],\"\\u0063\":{\"d\":null}}\n");
  ASSERT_TRUE(object) << object.error().text;
  ASSERT_EQ(object->members().size(), 3u);
  EXPECT_EQ(object->find("a"), "0.1000");
  EXPECT_EQ(object->find("b"), "[1, 2 ]");
  EXPECT_EQ(object->find("c"), "{\"d\":null}");
  EXPECT_FALSE(object->has("d"));
  EXPECT_TRUE(scan_json_object("{}")->members().empty());
}

TEST(JsonScan, RefusesWhatIsNotOneObject) {
  for (const char* text : {"",
                           " ",
                           "[]",
                           "1",
                           "null",
                           "{",
                           "}",
                           "{}{}",
                           "{} x",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{,}",
                           "{a:1}",
                           "{'a':1}",
                           "{\"a\":01}",
                           "{\"a\":1.}",
                           "{\"a\":.5}",
                           "{\"a\":+1}",
                           "{\"a\":-}",
                           "{\"a\":1e}",
                           "{\"a\":NaN}",
                           "{\"a\":Infinity}",
                           "{\"a\":truth}",
                           "{\"a\":\"\n\"}",
                           "{\"a\":\"\\x\"}",
                           "{\"a\":\"\\u12g4\"}",
                           "{\"a\":\"x}",
                           "{\"a\":[1 2]}",
                           "{\"a\":[1,]}",
                           "{\"a\":1 \"b\":2}",
                           "{\"a\":1}//",
                           "{/**/}",
                           "\xef\xbb\xbf{}"}) {
    EXPECT_NE(error_of(text), "") << text;
  }
  EXPECT_NE(error_of(std::string_view("{\"a\":\"\0\"}", 9)), "");
}

TEST(JsonScan, RefusesBrokenUtf8AndLoneSurrogates) {
  for (const char* text :
       {"\xff", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
        "\xf8\x88\x80\x80\x80", "\\ud800", "\\udc00", "\\ud800\\u0041", "\\ud800x"}) {
    EXPECT_NE(error_of(std::string("{\"a\":\"") + text + "\"}"), "") << text;
  }
  EXPECT_EQ(scan_json_object("{\"a\":\"\\ud83d\\ude00\"}")->text("a"), "\xf0\x9f\x98\x80");
  EXPECT_EQ(scan_json_object("{\"a\":\"\\u0000x\"}")->text("a"), std::string("\0x", 2));
}

TEST(JsonScan, RefusesDuplicateKeysAtEveryDepthAndNamesThePlace) {
  EXPECT_EQ(error_of("{\"a\":1,\"b\":2,\"a\":3}"), "json: duplicate key 'a' at byte 13");
  EXPECT_EQ(error_of("{\"x\":[{\"a\":1,\"\\u0061\":3}]}"), "json: duplicate key 'a' at byte 13");
  std::string many = "{";
  for (int i = 0; i < 100; ++i) many += "\"k" + std::to_string(i) + "\":0,";
  EXPECT_EQ(error_of(many + "\"z\":0}"), "");
  EXPECT_NE(error_of(many + "\"k50\":0}"), "");
  EXPECT_EQ(error_of("{\"a\":{\"b\":1},\"b\":{\"a\":1}}"), "");
}

TEST(JsonScan, BoundsDepthAndSize) {
  const auto nested = [](std::size_t n) {
    return "{\"a\":" + std::string(n, '[') + std::string(n, ']') + "}";
  };
  EXPECT_EQ(error_of(nested(127)), "");
  EXPECT_NE(error_of(nested(128)), "");
  EXPECT_NE(error_of("{\"a\":" + std::string(1'000'000, '[')), "");
  EXPECT_NE(error_of("{\"a\":12345}", {.size_bytes_max = 10}), "");
}

TEST(JsonScan, TypedReadersGiveTheDefaultForOtherTypes) {
  const auto o = scan_json_object("{\"s\":\"x\",\"n\":-5,\"f\":1.5,\"t\":true,"
                                  "\"big\":99999999999999999999}");
  EXPECT_EQ(o->text("s"), "x");
  EXPECT_EQ(o->text("n", "d"), "d");
  EXPECT_EQ(o->integer("n"), -5);
  EXPECT_EQ(o->integer("f", 7), 7);
  EXPECT_EQ(o->integer("big", 7), 7);
  EXPECT_EQ(o->integer("s", 7), 7);
  EXPECT_TRUE(o->boolean("t"));
  EXPECT_TRUE(o->boolean("s", true));
}

TEST(JsonScan, ArraysYieldRawElements) {
  const auto a = scan_json_array("[1, \"x\", {\"a\":[]} ]");
  ASSERT_TRUE(a);
  EXPECT_EQ(*a, (std::vector<std::string_view>{"1", "\"x\"", "{\"a\":[]}"}));
  EXPECT_TRUE(scan_json_array("[]")->empty());
  EXPECT_FALSE(scan_json_array("[1,]"));
  EXPECT_FALSE(scan_json_array("{}"));
}

TEST(JsonWrite, HasOneForm) {
  JsonWriter w;
  w.text("a", "q\"\\\b\f\n\r\t\x01\x7f\xc3\xa4").number("n", -1).boolean("b", false).null("z");
  w.raw("r", "[1]").texts("t", {"x", "y"}).texts("e", {}).count("c", 18446744073709551615u);
  EXPECT_EQ(
      w.finish(),
      "{\"a\":\"q\\\"\\\\\\b\\f\\n\\r\\t\\u0001\x7f\xc3\xa4\",\"n\":-1,\"b\":false,\"z\":null,"
      "\"r\":[1],\"t\":[\"x\",\"y\"],\"e\":[],\"c\":18446744073709551615}");
  EXPECT_EQ(JsonWriter().finish(), "{}");
}

TEST(JsonWrite, PathsThatAreNotUtf8KeepTheirBytes) {
  JsonWriter w;
  w.path("path", "/tmp/\xff\xfe").path("cwd", "/tmp");
  const std::string text = w.finish();
  const auto o = scan_json_object(text);
  EXPECT_FALSE(o->has("path"));
  EXPECT_EQ(base64_decode(o->text("path_b64")), "/tmp/\xff\xfe");
  EXPECT_EQ(o->text("cwd"), "/tmp");
}

TEST(JsonUnquote, IsEmptyForWhatIsNoString) {
  for (const char* raw :
       {"", "\"", "x", "\"a", "\"a\"b", "\"a\"b\"", "1", "\"\\\"", "\"\\ud800\""}) {
    EXPECT_EQ(json_unquote(raw), "") << raw;
  }
  EXPECT_EQ(json_unquote("\"a\\/\\u00e4\""), "a/\xc3\xa4");
}

TEST(Base64, KnownAnswersAndStrictness) { // RFC 4648, 10
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  for (const char* bad : {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "Z===", "====", "Zg==Zg==", "Zm8 "}) {
    EXPECT_EQ(base64_decode(bad), "") << bad;
  }
}

RC_GTEST_PROP(JsonProperty, QuotingIsUndoneByUnquoting, ()) {
  const auto bytes = *rc::gen::arbitrary<std::string>();
  const std::string quoted = json_quote(bytes);
  RC_ASSERT(quoted.find('\n') == std::string::npos);
  if (is_utf8(bytes)) RC_ASSERT(json_unquote(quoted) == bytes);
  RC_ASSERT(scan_json_object("{\"a\":" + quoted + "}").has_value());
}

RC_GTEST_PROP(JsonProperty, Base64RoundTrips, ()) {
  const auto bytes = *rc::gen::arbitrary<std::string>();
  RC_ASSERT(base64_decode(base64(bytes)) == bytes);
}

RC_GTEST_PROP(JsonProperty, WhatIsWrittenScansToTheSame, ()) {
  const auto values = *rc::gen::arbitrary<std::vector<std::string>>();
  JsonWriter w;
  for (std::size_t i = 0; i < values.size(); ++i) w.path("k" + std::to_string(i), values[i]);
  const std::string text = w.finish();
  const auto o = scan_json_object(text);
  RC_ASSERT(o.has_value());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string key = "k" + std::to_string(i);
    const std::string back = o->has(key) ? o->text(key) : base64_decode(o->text(key + "_b64"));
    RC_ASSERT(back == values[i]);
  }
}

} // namespace
} // namespace nd7
