#include "session/log_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

#include "base/json.h"
#include "core/chain.h"
#include "core/event.h"
#include "core/verify.h"
#include "os/files.h"
#include "session/keys.h"

namespace nd7 {
namespace {

namespace fs = std::filesystem;

struct Findings final : Reporter {
  void fault(const Fault& f) override { text = std::string(fault_name(f.kind)) + ": " + f.detail; }
  std::string text;
};

class LogFileTest : public ::testing::Test {
protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "nd7-log-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    top_ = name;
    directory_ = top_ + "/s1";
  }
  void TearDown() override { fs::remove_all(top_); }

  std::unique_ptr<LogFile> open(bool exclusive = true) const {
    auto log = LogFile::open(directory_, "s1", exclusive);
    EXPECT_TRUE(log) << log.error().text;
    return log ? std::move(*log) : nullptr;
  }
  std::string open_error() const {
    auto log = LogFile::open(directory_, "s1", true);
    return log ? "" : log.error().text;
  }
  std::string events() const { return *os::read_file(directory_ + "/events.ndjson", 1u << 30); }
  std::string head() const { return *os::read_file(directory_ + "/head", 1000); }
  void put(const std::string& name, const std::string& content) const {
    ASSERT_TRUE(os::replace_file(directory_ + "/" + name, content, {.sync = false}));
  }
  VerifyResult verify(Findings& findings, SignatureChecker checker = {}) const {
    return verify_log(events(),
                      {.session_id = "s1", .head = head(), .check_signature = std::move(checker)},
                      findings);
  }
  // Consistent, head included; the number of entries.
  std::uint64_t sound() const {
    Findings findings;
    const VerifyResult result = verify(findings);
    EXPECT_TRUE(result.consistent) << findings.text;
    EXPECT_EQ(result.torn_bytes, 0u);
    return result.entries;
  }
  std::string top_;
  std::string directory_;
};

EntryInput note(const std::string& body) {
  return {.source = "effect:kernel", .kind = "write", .body = body};
}
std::string number_body(std::uint64_t n) {
  return JsonWriter().count("n", n).finish();
}

TEST_F(LogFileTest, EntriesAreChainedAndContinuedByTheNextOpen) {
  for (std::uint64_t round = 0; round < 3; ++round) {
    auto log = open();
    ASSERT_NE(log, nullptr);
    EXPECT_EQ(log->count(), round * 2);
    EXPECT_EQ(*log->append(note("{}")), round * 2);
    EXPECT_EQ(*log->append(note("{\"a\":[1,2]}")), round * 2 + 1);
  }
  EXPECT_EQ(sound(), 6u);
  EXPECT_EQ(fs::status(directory_).permissions(), fs::perms::owner_all);
  struct stat st {};
  ASSERT_EQ(::stat((directory_ + "/events.ndjson").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
}

TEST_F(LogFileTest, AnEntryStaysOneLineWhateverItsBody) {
  auto log = open();
  EXPECT_TRUE(log->append(note("{\n \"a\":\r\n 1\n}")));
  EXPECT_TRUE(
      log->append(note(JsonWriter().text("name", "a\n{\"type\":\"session_end\"}").finish())));
  for (const char* bad : {"", "[]", "{", "{} x", "{\"a\":1,\"a\":2}", "{\"a\":\"\n\"}"}) {
    EXPECT_FALSE(log->append(note(bad))) << bad;
  }
  EXPECT_FALSE(log->append(note("{\"a\":\"" + std::string(17u << 20, 'x') + "\"}")));
  EXPECT_EQ(sound(), 2u);
}

TEST_F(LogFileTest, TheSupervisorsLogIsHeldByOneProcess) {
  auto log = open();
  const int child = ::fork();
  if (child == 0) ::_exit(LogFile::open(directory_, "s1", true) ? 1 : 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(os::is_locked(directory_ + "/lock"));
  log.reset();
  EXPECT_FALSE(os::is_locked(directory_ + "/lock"));
}

TEST_F(LogFileTest, FortyProcessesAtOnceLoseAndDoubleNothing) {
  constexpr int processes = 40, each = 25;
  std::vector<pid_t> children;
  for (int p = 0; p < processes; ++p) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto log = LogFile::open(directory_, "s1", false);
      if (!log) ::_exit(2);
      for (int i = 0; i < each; ++i) {
        const auto n = static_cast<std::uint64_t>(p * each + i);
        if (!(*log)->append(note(number_body(n)))) ::_exit(3);
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(sound(), static_cast<std::uint64_t>(processes * each));
  std::set<std::int64_t> seen;
  LineSplitter lines;
  lines.feed(events(), [&](std::string_view line) {
    Entry entry;
    EXPECT_TRUE(read_entry(line, entry));
    EXPECT_TRUE(seen.insert(entry.body.integer("n", -1)).second);
    return true;
  });
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(processes * each));
}

TEST_F(LogFileTest, ThreadsShareOneLog) {
  auto log = open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < 200; ++i) EXPECT_TRUE(log->append(note(number_body(i))));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sound(), 800u);
}

// The child tells every acknowledged number over a pipe; the parent kills it at a random moment,
// again and again on the same log.
TEST_F(LogFileTest, AnAcknowledgedEntrySurvivesKillAtAnyMoment) {
  std::mt19937 random(7);
  std::uint64_t acknowledged = 0;
  for (int round = 0; round < 60; ++round) {
    int pipe_fds[2];
    ASSERT_EQ(::pipe(pipe_fds), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      auto log = LogFile::open(directory_, "s1", true);
      if (!log) ::_exit(2);
      const std::string filler(static_cast<std::size_t>(round) * 3000, 'x');
      for (std::uint64_t n = acknowledged;; ++n) {
        if (!(*log)->append(note(JsonWriter().count("n", n).text("x", filler).finish())))
          ::_exit(3);
        if (::write(pipe_fds[1], &n, sizeof n) != sizeof n) ::_exit(4);
      }
    }
    ::close(pipe_fds[1]);
    std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 5000));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
    for (std::uint64_t n = 0; ::read(pipe_fds[0], &n, sizeof n) == sizeof n;) acknowledged = n + 1;
    ::close(pipe_fds[0]);
    ASSERT_NE(open(), nullptr); // repairs
    std::set<std::int64_t> seen;
    LineSplitter lines;
    lines.feed(events(), [&](std::string_view line) {
      Entry entry;
      EXPECT_TRUE(read_entry(line, entry));
      if (entry.kind == "write") seen.insert(entry.body.integer("n", -1));
      return true;
    });
    for (std::uint64_t n = 0; n < acknowledged; ++n) {
      ASSERT_TRUE(seen.contains(static_cast<std::int64_t>(n))) << n;
    }
    acknowledged = std::max<std::uint64_t>(acknowledged, seen.size());
  }
  EXPECT_GT(acknowledged, 0u);
  EXPECT_GE(sound(), acknowledged);
}

TEST_F(LogFileTest, ATornTailOfEveryLengthIsContinuedByAGap) {
  {
    auto log = open();
    ASSERT_TRUE(log->append(note(number_body(0))));
    ASSERT_TRUE(log->append(note(number_body(1))));
  }
  const std::string whole = events();
  const std::string whole_head = head();
  const std::string next = seal_entry({.session_id = "s1",
                                       .seq = 2,
                                       .host = "h",
                                       .source = "effect:kernel",
                                       .kind = "write",
                                       .prev = whole_head.substr(2, 64),
                                       .body = "{\"n\":2}"})
                               .line;
  for (std::size_t size = 1; size < next.size(); ++size) {
    put("events.ndjson", whole + next.substr(0, size));
    put("head", whole_head);
    auto log = open();
    ASSERT_NE(log, nullptr) << size;
    ASSERT_EQ(*log->append(note(number_body(3))), 3u);
    ASSERT_EQ(sound(), 4u);
    Entry gap;
    std::vector<std::string> lines;
    LineSplitter().feed(events(), [&](std::string_view line) {
      lines.emplace_back(line);
      return true;
    });
    ASSERT_TRUE(read_entry(lines.at(2), gap));
    EXPECT_EQ(gap.kind, "gap");
    EXPECT_EQ(gap.body.text("reason"), "torn tail");
    EXPECT_EQ(gap.body.integer("torn_bytes"), static_cast<std::int64_t>(size));
    EXPECT_EQ(gap.body.text("torn_hash"), blake3_hex(next.substr(0, size)));
  }
}

TEST_F(LogFileTest, ATornFirstEntryIsContinuedToo) {
  ASSERT_TRUE(os::make_private_directory(directory_));
  put("events.ndjson", "{\"v\":1,\"sess");
  ASSERT_NE(open(), nullptr);
  EXPECT_EQ(sound(), 1u);
}

TEST_F(LogFileTest, AHeadThatIsMissingOrOneBehindIsRepaired) {
  std::string before;
  {
    auto log = open();
    ASSERT_TRUE(log->append(note("{}")));
    before = head();
    ASSERT_TRUE(log->append(note("{}")));
  }
  const std::string right = head();
  put("head", before);
  ASSERT_NE(open(), nullptr);
  EXPECT_EQ(head(), right);
  fs::remove(directory_ + "/head");
  ASSERT_NE(open(), nullptr);
  EXPECT_EQ(head(), right);
}

TEST_F(LogFileTest, AnyOtherDisagreementIsRefused) {
  std::string first;
  {
    auto log = open();
    ASSERT_TRUE(log->append(note("{}")));
    first = head();
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(log->append(note("{}")));
  }
  const std::string good = events();
  const std::string right = head();
  const std::string hash = right.substr(2, 64);
  for (const std::string& bad : {first, "5 " + hash + "\n", "3 " + hash + "\n",
                                 std::string("4 x\n"), right.substr(0, 30), right + right}) {
    put("head", bad);
    EXPECT_NE(open_error(), "") << bad;
    EXPECT_EQ(events(), good);
  }
  put("head", right);
  EXPECT_EQ(open_error(), "");
  const std::size_t last_line = good.rfind('\n', good.size() - 2) + 1;
  put("events.ndjson", good.substr(0, last_line)); // a clean cut
  EXPECT_NE(open_error().find("its head says entry 4"), std::string::npos);
  put("events.ndjson", good.substr(0, last_line + 10)); // a cut through an acknowledged entry
  EXPECT_NE(open_error(), "");
  put("events.ndjson", "");
  EXPECT_NE(open_error(), "");
  std::string changed = good;
  changed[changed.size() - 120] ^= 1;
  put("events.ndjson", changed);
  EXPECT_NE(open_error(), "");
  put("events.ndjson", good + "\n");
  EXPECT_NE(open_error(), "");
}

TEST_F(LogFileTest, AFullDiskLeavesTheLogAsItWas) {
  const int child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN); // writes fail with EFBIG, after a partial one
    auto log = LogFile::open(directory_, "s1", true);
    if (!log || !(*log)->append(note(number_body(0)))) ::_exit(2);
    const auto size =
        *os::file_size(Fd(::open((directory_ + "/events.ndjson").c_str(), O_RDONLY)).get());
    rlimit limit{size + 300, RLIM_INFINITY};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(3);
    const std::string big = JsonWriter().text("x", std::string(500, 'x')).finish();
    for (int i = 0; i < 3; ++i) {
      auto refused = (*log)->append(note(big));
      if (refused || refused.error().os_errno != EFBIG) ::_exit(4);
    }
    limit.rlim_cur = RLIM_INFINITY;
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(5);
    ::_exit((*log)->append(note(big)) ? 0 : 6);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
  EXPECT_EQ(sound(), 2u);
}

TEST_F(LogFileTest, CheckpointsAreSignedByTheMachinesKey) {
  const std::string keys = top_ + "/keys";
  auto key = machine_key(keys);
  ASSERT_TRUE(key) << key.error().text;
  {
    auto log = open();
    EXPECT_FALSE(log->checkpoint());
    log->set_signer(key->sign, key->id);
    ASSERT_TRUE(log->append(note("{}")));
    ASSERT_TRUE(log->checkpoint());
    ASSERT_TRUE(log->append(note("{}")));
  }
  Findings findings;
  const VerifyResult result = verify(findings, *signature_checker(*machine_public_keys(keys)));
  EXPECT_TRUE(result.consistent) << findings.text;
  EXPECT_EQ(result.attested.entries, 1u);
  EXPECT_EQ(result.attested.key_id, key->id);
  EXPECT_EQ(result.unattested_tail(), 1u);
  const auto other = machine_key(top_ + "/other");
  EXPECT_EQ(verify(findings, *signature_checker({other->public_hex})).unknown_checkpoints, 1u);
}

TEST_F(LogFileTest, AnAppendTakesMicroseconds) {
  auto log = open();
  const std::string body = JsonWriter().text("x", std::string(1200, 'x')).finish();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(log->append(note(body)));
  const auto spent = std::chrono::steady_clock::now() - start;
  const double each_us = std::chrono::duration<double, std::micro>(spent).count() / 2000;
  RecordProperty("append_us", std::to_string(each_us));
  std::printf("append of 1.5 KB: %.1f us\n", each_us);
  EXPECT_LT(each_us, 1000.0); // a sync per entry would not pass
}

} // namespace
} // namespace nd7
