#include "core/timeline.h"

#include <gtest/gtest.h>

#include "core/chain.h"

namespace nd7 {
namespace {

class TimelineTest : public ::testing::Test {
protected:
  Entry& entry(std::string_view source, std::string_view kind, std::string_view body) {
    auto sealed = seal_entry({.session_id = "s",
                              .seq = seq_++,
                              .ts = 1'000'000'000,
                              .mono = 1,
                              .host = "h",
                              .source = source,
                              .kind = kind,
                              .prev = first_link("s"),
                              .body = body});
    sealed.line.pop_back();
    EXPECT_TRUE(read_entry(sealed.line, entry_));
    return entry_;
  }
  void add(std::string_view source, std::string_view kind, std::string_view body) {
    timeline_.add(entry(source, kind, body));
  }
  std::string text(std::string_view source, std::string_view kind, std::string_view body) {
    return row_of(entry(source, kind, body), "/home/u", "/home/u/p").text;
  }
  std::string effect(std::string_view kind, std::string_view body) {
    return text("effect:kernel", kind, body);
  }
  std::uint64_t seq_ = 0;
  Entry entry_;
  Timeline timeline_{{.home = "/home/u"}};
};

TEST_F(TimelineTest, EffectsStandBelowTheirCallAlsoWhenCallsOverlap) {
  add("nd7", "start", R"({"agent":"claude","project":"/home/u/p"})");
  add("intent:claude-code", "tool_call", R"({"tool_use_id":"a","tool_name":"Bash","argv":"make"})");
  add("intent:claude-code", "tool_call", R"({"tool_use_id":"b","tool_name":"Write"})");
  add("effect:kernel", "write", R"({"call":"a","path":"/home/u/p/x","mode":"created"})");
  add("effect:kernel", "write", R"({"call":"b","path":"/home/u/p/y","mode":"existing"})");
  add("effect:kernel", "refused", R"({"call":"a","would":"write","path":"/etc/x","rule":"r"})");
  add("intent:claude-code", "tool_result", R"({"tool_use_id":"a","tool_name":"Bash","ok":false})");
  const auto& rows = timeline_.rows();
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[1].text, "Bash: make");
  ASSERT_EQ(rows[1].below.size(), 2u);
  EXPECT_EQ(rows[1].below[0].text, "./x (new)");
  EXPECT_EQ(rows[1].below[1].text, "write /etc/x");
  EXPECT_EQ(rows[1].below[1].rule, "r");
  EXPECT_EQ(rows[1].below[1].open_with, "");
  ASSERT_EQ(rows[2].below.size(), 1u);
  EXPECT_EQ(rows[3].text, "Bash: failed");
  EXPECT_EQ(timeline_.refusals(), 1u);
}

TEST_F(TimelineTest, RoutineAndHousekeepingBecomeCounts) {
  add("nd7", "start", R"({"agent":"claude","project":"/p"})");
  add("effect:kernel", "read", R"({"call":null,"path":"/a","count":3})");
  add("effect:kernel", "write", R"({"call":null,"path":"/home/u/.claude/x"})");
  add("effect:kernel", "refused", R"({"call":null,"would":"read","path":"/k","rule":"r"})");
  const auto& rows = timeline_.rows();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1].folded, (std::map<std::string, std::uint64_t>{{"read", 3}, {"write", 1}}));
  EXPECT_EQ(rows[2].kind, "refused"); // never folded
}

TEST_F(TimelineTest, WhatAGenericProgramDoesIsShown) {
  add("nd7", "start", R"({"agent":"none","project":"/p"})");
  add("effect:kernel", "write", R"({"call":null,"path":"/p/x"})");
  add("effect:kernel", "write", R"({"call":null,"path":"/p/x"})");
  ASSERT_EQ(timeline_.rows().size(), 2u);
  EXPECT_EQ(timeline_.rows()[1].times, 2u);
}

TEST_F(TimelineTest, NothingIsFoldedWhenAskedForAll) {
  timeline_ = Timeline({.home = "", .fold = false});
  add("nd7", "start", R"({"agent":"claude","project":"/p"})");
  add("effect:kernel", "read", R"({"call":null,"path":"/a"})");
  add("effect:kernel", "read", R"({"call":null,"path":"/a"})");
  EXPECT_EQ(timeline_.rows().size(), 3u);
}

TEST_F(TimelineTest, EveryKindHasWords) {
  EXPECT_EQ(effect("exec", R"({"argv":["a","b c"],"path":"/bin/a"})"), "a 'b c'");
  EXPECT_EQ(effect("exec", R"({"path":"/home/u/bin/a"})"), "~/bin/a");
  EXPECT_EQ(effect("exit", R"({"status":3})"), "status 3");
  EXPECT_EQ(effect("exit", R"({"signal":9})"), "signal 9");
  EXPECT_EQ(effect("exit", R"({"status":null})"), "status unknown");
  EXPECT_EQ(effect("write", R"({"path":"/x","result":"ENOSPC"})"), "/x: ENOSPC");
  EXPECT_EQ(effect("write", R"({"path_b64":"L/8="})"), "/\xff");
  EXPECT_EQ(effect("rename", R"({"from":"/a","to":"/b","replaced":true})"),
            "/a -> /b (replaced it)");
  EXPECT_EQ(effect("symlink", R"({"from":"t","to":"/b"})"), "/b -> t");
  EXPECT_EQ(effect("meta", R"({"path":"/a","change":"mode","before":"0644","after":"0755"})"),
            "/a: mode 0644 -> 0755");
  EXPECT_EQ(effect("connect", R"({"addr":"::1","port":80})"), "[::1]:80");
  EXPECT_EQ(effect("connect", R"({"addr":"1.2.3.4","port":443,"name":"x.y"})"),
            "x.y:443 (1.2.3.4)");
  EXPECT_EQ(effect("resolve", R"({"name":"x.y","type":"A","answers":["1.2.3.4"]})"),
            "x.y A -> 1.2.3.4");
  EXPECT_EQ(effect("signal", R"({"to":5,"number":15})"), "15 to process 5");
  EXPECT_EQ(text("nd7", "gap", R"({"reason":"crash","lost":3,"inflight":["rename"]})"),
            "crash, 3 entries lost, in flight: [\"rename\"]");
  EXPECT_EQ(text("nd7", "end", R"({"signal":9,"seconds":5,"refused":1})"),
            "signal 9 after 5 s, 1 refused");
  EXPECT_EQ(text("nd7", "grant", R"({"what":"host","host":"x.y","port":443})"), "host x.y:443");
  EXPECT_EQ(text("other:x", "news", R"({"a":1})"), R"({"a":1})");
}

TEST_F(TimelineTest, CountsAreEnglish) {
  EXPECT_EQ(counted(1, "read"), "1 read");
  EXPECT_EQ(counted(2, "mkdir"), "2 directories");
  EXPECT_EQ(counted(1, "mkdir"), "1 directory");
  EXPECT_EQ(counted(1, "resolve"), "1 name resolved");
  EXPECT_EQ(counted(3, "unheard"), "3 unheard");
}

TEST(LineSplitterTest, LinesSurviveAnyCut) {
  const std::string all = "a\n\nbb\nccc";
  for (std::size_t cut = 0; cut <= all.size(); ++cut) {
    LineSplitter splitter;
    std::vector<std::string> lines;
    const auto each = [&](std::string_view line) {
      lines.emplace_back(line);
      return true;
    };
    splitter.feed(all.substr(0, cut), each);
    splitter.feed(all.substr(cut), each);
    EXPECT_EQ(lines, (std::vector<std::string>{"a", "", "bb"})) << cut;
    EXPECT_EQ(splitter.rest(), "ccc");
  }
}

} // namespace
} // namespace nd7
