// sessions, show and verify on logs in a home of their own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/json.h"
#include "cli/command.h"
#include "os/files.h"
#include "session/keys.h"
#include "session/log_file.h"
#include "session/session.h"

namespace nd7 {
namespace {

class LogCommands : public ::testing::Test {
protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "nd7-cli-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    top_ = name;
    ::setenv("HOME", top_.c_str(), 1);
    for (const char* v :
         {"XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"}) {
      ::unsetenv(v);
    }
    places_ = *find_places();
  }
  void TearDown() override { std::filesystem::remove_all(top_); }

  std::string directory(const std::string& id) const { return session_directory(places_, id); }
  void make(const std::string& id, bool closed = true) {
    auto log = LogFile::open(directory(id), id, true);
    ASSERT_TRUE(log) << log.error().text;
    const auto key = machine_key(places_.state + "/keys");
    ASSERT_TRUE(key) << key.error().text;
    (*log)->set_signer(key->sign, key->id);
    const auto add = [&](std::string_view source, std::string_view kind, std::string_view body) {
      ASSERT_TRUE((*log)->append({.source = source, .kind = kind, .body = body}));
    };
    add("nd7", "start", R"({"agent":"none","argv":["make"],"project":"/p"})");
    add("effect:kernel", "write",
        R"({"pid":7,"call":null,"result":0,"path":"/p/a","mode":"created"})");
    add("effect:kernel", "read", R"({"pid":8,"call":null,"result":0,"path":"/p/b","count":2})");
    add("effect:kernel", "refused",
        R"({"pid":7,"call":null,"would":"write","path":"/etc/x","rule":"outside","open_with":"nd7 allow /etc/x"})");
    if (closed) add("nd7", "end", R"({"exit":0,"counts":{"writes":1},"refused":1,"seconds":1})");
    ASSERT_TRUE((*log)->checkpoint());
    ASSERT_TRUE(
        os::replace_file(directory(id) + "/meta.json",
                         R"({"agent":"none","project":"/p","started_ns":1758240000000000000})"));
  }
  std::string events(const std::string& id) const {
    return *os::read_file(directory(id) + "/events.ndjson", 1 << 20);
  }
  void put_events(const std::string& id, const std::string& bytes) const {
    ASSERT_TRUE(os::replace_file(directory(id) + "/events.ndjson", bytes));
  }
  int run(std::vector<std::string> words) {
    words.insert(words.begin(), "nd7");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int status = run_program(static_cast<int>(words.size()), argv.data());
    out_ = ::testing::internal::GetCapturedStdout();
    said_ = ::testing::internal::GetCapturedStderr();
    return status;
  }
  bool printed(std::string_view part) const { return out_.find(part) != std::string::npos; }

  std::string top_, out_, said_;
  Places places_;
};

TEST_F(LogCommands, VerifyGivesThreeAnswers) {
  make("s1");
  EXPECT_EQ(run({"verify", "s1"}), 0);
  EXPECT_TRUE(printed("s1: consistent"));
  EXPECT_TRUE(printed("attested    up to entry 4 by key "));
  EXPECT_TRUE(printed("unattested  tail of 0 entries"));
  EXPECT_EQ(run({"verify", "--json", "s1"}), 0);
  const auto answer = scan_json_object(out_);
  ASSERT_TRUE(answer) << out_;
  EXPECT_EQ(answer->find("consistent"), "true");
  EXPECT_EQ(answer->find("fault"), "null");
  EXPECT_EQ(scan_json_object(answer->find("attested"))->integer("entries"), 5);
}

TEST_F(LogCommands, VerifyExitsOneForBrokenAndTwoForCannot) {
  make("s1");
  make("s2");
  std::string bytes = events("s2");
  bytes.replace(bytes.find("/p/a"), 4, "/p/z");
  put_events("s2", bytes);
  EXPECT_EQ(run({"verify", "s2"}), 1);
  EXPECT_TRUE(printed("broken at entry 1: changed bytes"));
  EXPECT_EQ(run({"verify", directory("s2") + "/events.ndjson"}), 1);
  EXPECT_EQ(run({"verify", "--all"}), 1);
  EXPECT_TRUE(printed("s1: consistent") && printed("s2: broken"));
  EXPECT_EQ(run({"verify", "s3"}), 2);
  EXPECT_EQ(run({"verify", "/nowhere/events.ndjson"}), 2);
  EXPECT_EQ(run({"verify", "a", "b"}), 2);
}

TEST_F(LogCommands, VerifyFindsExchangedSessionsCutsAndForeignKeys) {
  make("s1");
  make("s2");
  const std::string one = events("s1");
  put_events("s1", events("s2"));
  EXPECT_EQ(run({"verify", "s1"}), 1);
  EXPECT_TRUE(printed("transplanted"));
  put_events("s1", one.substr(0, one.rfind('\n', one.size() - 2) + 1));
  EXPECT_EQ(run({"verify", "s1"}), 1);
  EXPECT_TRUE(printed("cut off"));
  put_events("s1", one);
  const std::string public_key = *machine_public_key(places_.state + "/keys");
  std::filesystem::remove_all(places_.state + "/keys");
  EXPECT_EQ(run({"verify", "s1"}), 0);
  EXPECT_TRUE(printed("keys that are not known here"));
  EXPECT_EQ(run({"verify", "s1", "--key", public_key}), 0);
  EXPECT_TRUE(printed("up to entry 4"));
  EXPECT_EQ(run({"verify", "s1", "--key", "zz"}), 2);
}

TEST_F(LogCommands, SessionsTellTheState) {
  EXPECT_EQ(run({"sessions"}), 0);
  EXPECT_NE(said_.find("no sessions recorded yet"), std::string::npos);
  EXPECT_EQ(run({"sessions", "--json"}), 0);
  EXPECT_TRUE(scan_json_array(out_)->empty());
  make("closed");
  make("open-end", false);
  auto running = LogFile::open(directory("running"), "running", true);
  ASSERT_TRUE(running);
  ASSERT_TRUE((*running)->append({.source = "nd7", .kind = "start", .body = "{}"}));
  auto bare = LogFile::open(directory("bare"), "bare", false);
  ASSERT_TRUE((*bare)->append({.source = "intent:codex", .kind = "prompt", .body = "{}"}));
  EXPECT_EQ(run({"sessions", "--json"}), 0);
  const auto list = scan_json_array(out_);
  ASSERT_TRUE(list) << out_;
  std::map<std::string, std::string> states;
  for (const std::string_view raw : *list) {
    const auto session = scan_json_object(raw);
    states[session->text("id")] = session->text("state");
  }
  EXPECT_EQ(
      states,
      (std::map<std::string, std::string>{
          {"closed", "ended"}, {"open-end", "torn"}, {"running", "running"}, {"bare", "open"}}));
}

TEST_F(LogCommands, ShowTellsAndFilters) {
  make("s1");
  EXPECT_EQ(run({"show"}), 0);
  for (const char* part :
       {"# start    make in /p", "* write    ./a (new)", "(2 reads)", "! REFUSED  write /etc/x",
        "by rule: outside", "allow it: nd7 allow /etc/x"}) {
    EXPECT_TRUE(printed(part)) << part << "\n" << out_;
  }
  EXPECT_EQ(run({"show", "s1", "--only", "write", "--json"}), 0);
  const std::string all = events("s1");
  const std::size_t first = all.find('\n') + 1;
  EXPECT_EQ(out_, all.substr(first, all.find('\n', first) + 1 - first)); // byte for byte
  EXPECT_EQ(run({"show", "--pid", "8", "--json"}), 0);
  EXPECT_EQ(std::count(out_.begin(), out_.end(), '\n'), 1);
  EXPECT_EQ(run({"show", "--path", "/p", "--json"}), 0);
  EXPECT_EQ(std::count(out_.begin(), out_.end(), '\n'), 2);
  EXPECT_EQ(run({"show", "--since", "4", "--json"}), 0);
  EXPECT_EQ(std::count(out_.begin(), out_.end(), '\n'), 2);
  EXPECT_EQ(run({"show", "--since", "1h", "--json"}), 0);
  EXPECT_EQ(std::count(out_.begin(), out_.end(), '\n'), 6);
  EXPECT_EQ(run({"show", "--since", "2001-01-01 00:00Z", "--only", "end", "--json"}), 0);
  EXPECT_EQ(std::count(out_.begin(), out_.end(), '\n'), 1);
  EXPECT_EQ(run({"show", "--follow"}), 0); // ended: tells and returns
  EXPECT_TRUE(printed("! REFUSED"));
  EXPECT_EQ(run({"show", "--only", "wirte"}), 2);
  EXPECT_NE(said_.find("did you mean write?"), std::string::npos);
  EXPECT_EQ(run({"show", "--since", "yesterday"}), 2);
}

TEST_F(LogCommands, WhatIsNoCommandIsExplained) {
  EXPECT_EQ(run({"verfiy"}), 2);
  EXPECT_NE(said_.find("did you mean 'nd7 verify'?"), std::string::npos);
  EXPECT_EQ(run({}), 2);
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_TRUE(printed("  verify "));
  EXPECT_EQ(run({"help", "verify"}), 0);
  EXPECT_TRUE(printed("usage: nd7 verify"));
  EXPECT_EQ(run({"--version"}), 0);
  EXPECT_TRUE(out_.starts_with("nd7 "));
  for (const char* shell : {"bash", "zsh", "fish"}) {
    EXPECT_EQ(run({"completions", shell}), 0);
    EXPECT_TRUE(printed("verify")) << shell;
    EXPECT_TRUE(printed("follow")) << shell;
  }
  EXPECT_EQ(run({"manual"}), 0);
  EXPECT_TRUE(out_.starts_with(".TH ND7 1"));
}

} // namespace
} // namespace nd7
