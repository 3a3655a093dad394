#include "core/verify.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <sstream>

#include "base/json.h"
#include "core/chain.h"

namespace nd7 {
namespace {

constexpr std::string_view session = "0199a000-0000-7000-8000-000000000001";

struct Findings final : Reporter {
  void fault(const Fault& f) override { faults.push_back(f); }
  void checkpoint(std::uint64_t entry, SignatureAnswer answer) override {
    checkpoints.emplace_back(entry, answer);
  }
  std::vector<Fault> faults;
  std::vector<std::pair<std::uint64_t, SignatureAnswer>> checkpoints;
};

struct Log {
  std::vector<std::string> lines;
  std::vector<std::string> hashes;
  std::string id{session};

  void add(std::string_view source, std::string_view kind, std::string_view body = "{}",
           std::int64_t ts = 0) {
    const std::string prev = hashes.empty() ? first_link(id) : hashes.back();
    const std::uint64_t seq = lines.size();
    auto sealed = seal_entry({.session_id = id,
                              .seq = seq,
                              .ts = ts != 0 ? ts : 1000 + static_cast<std::int64_t>(seq),
                              .mono = seq,
                              .host = "h",
                              .source = source,
                              .kind = kind,
                              .prev = prev,
                              .body = body});
    lines.push_back(sealed.line);
    hashes.push_back(sealed.hash);
  }
  // "Signs" by hashing the message with a secret prefix.
  void add_checkpoint(std::string_view key = "k1") {
    const std::uint64_t count = lines.size();
    const std::string message = checkpoint_message(id, count, hashes.back(), 77);
    JsonWriter body;
    body.count("count", count).text("head", hashes.back()).text("key", key);
    body.text("signature", blake3_hex("secret" + message));
    add("nd7", "checkpoint", body.finish(), 77);
  }
  std::string bytes() const {
    std::string all;
    for (const std::string& line : lines) all += line;
    return all;
  }
  std::string head() const { return head_text({lines.size() - 1, hashes.back()}); }
};

SignatureAnswer check(std::string_view key, std::string_view message, std::string_view signature) {
  if (key != "k1") return SignatureAnswer::unknown_key;
  return blake3_hex("secret" + std::string(message)) == signature ? SignatureAnswer::good
                                                                  : SignatureAnswer::bad;
}

Log sample(std::size_t count = 8) {
  Log log;
  log.add("nd7", "start", R"({"agent":"claude"})");
  while (log.lines.size() < count) {
    log.add("effect:kernel", "write", R"({"path":"/p/)" + std::to_string(log.lines.size()) + "\"}");
  }
  return log;
}

struct Answer {
  VerifyResult result;
  Findings findings;
  std::string kind() const {
    return findings.faults.empty() ? "" : fault_name(findings.faults.front().kind);
  }
};

Answer verify(const std::string& bytes, std::optional<std::string> head = {}, bool live = false) {
  Answer answer;
  answer.result = verify_log(bytes,
                             {.session_id = std::string(session),
                              .head = std::move(head),
                              .live = live,
                              .check_signature = check},
                             answer.findings);
  EXPECT_LE(answer.findings.faults.size(), 1u);
  EXPECT_EQ(answer.result.consistent, answer.findings.faults.empty());
  return answer;
}

std::string published_chain() {
  std::ifstream file(ND7_SOURCE_DIR "/tests/vectors/chain.json");
  std::stringstream text;
  text << file.rdbuf();
  const std::string whole = text.str();
  const auto document = scan_json_object(whole);
  const auto frames = scan_json_array(document->find("frames"));
  std::string bytes;
  for (const std::string_view frame : *frames) {
    bytes += scan_json_object(frame)->text("frame");
  }
  return bytes;
}

TEST(Verify, ThePublishedChainOfVersionZeroIsConsistent) {
  Findings findings;
  const VerifyResult result = verify_log(published_chain(), {}, findings);
  EXPECT_TRUE(result.consistent);
  EXPECT_EQ(result.entries, 5u);
  EXPECT_EQ(result.session_id, "3f2d1c48-9b7a-4e51-8c6d-0a1b2c3d4e5f");
  EXPECT_EQ(result.last_hash, "361205334258194406ec9c8f1db3e716fadfa6780fa249b8819f89248180e155");
}

TEST(Verify, EveryFlippedBitOfThePublishedChainIsFoundInItsLine) {
  const std::string good = published_chain();
  std::uint64_t line = 1;
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 7)));
    Findings findings;
    const VerifyResult result =
        verify_log(bad, {.session_id = "3f2d1c48-9b7a-4e51-8c6d-0a1b2c3d4e5f"}, findings);
    if (i + 1 == good.size()) { // the last newline: the line is unfinished
      EXPECT_EQ(result.entries, 4u);
      EXPECT_GT(result.torn_bytes, 0u);
      break;
    }
    ASSERT_FALSE(result.consistent) << i;
    ASSERT_EQ(findings.faults.at(0).line, line) << i;
    ASSERT_EQ(findings.faults.at(0).entry, line - 1) << i;
    if (good[i] == '\n') ++line;
  }
}

TEST(Verify, WhatTheWriterMakesIsConsistent) {
  const Log log = sample();
  const Answer answer = verify(log.bytes(), log.head());
  EXPECT_TRUE(answer.result.consistent);
  EXPECT_EQ(answer.result.entries, 8u);
  EXPECT_EQ(answer.result.head, HeadState::agrees);
  EXPECT_EQ(answer.result.last_hash, log.hashes.back());
  EXPECT_EQ(answer.result.unattested_tail(), 8u);
  EXPECT_TRUE(verify("").result.consistent);
}

TEST(Verify, ChangedBytesAreNamed) {
  Log log = sample();
  log.lines[3].replace(log.lines[3].find("/p/3"), 4, "/q/3");
  const Answer answer = verify(log.bytes(), log.head());
  EXPECT_EQ(answer.kind(), "changed");
  EXPECT_EQ(answer.findings.faults[0].entry, 3u);
  EXPECT_EQ(answer.findings.faults[0].line, 4u);
  EXPECT_EQ(answer.findings.faults[0].offset_bytes,
            log.lines[0].size() + log.lines[1].size() + log.lines[2].size());
}

TEST(Verify, ARewrittenEntryBreaksTheLinkOfTheNext) {
  Log log = sample();
  Log forged = sample(3);
  forged.add("effect:kernel", "write", R"({"path":"/forged"})");
  log.lines[3] = forged.lines[3];
  const Answer answer = verify(log.bytes());
  EXPECT_EQ(answer.kind(), "unlinked");
  EXPECT_EQ(answer.findings.faults[0].entry, 4u);
}

TEST(Verify, MissingEntriesAreNamedWhereverTheyWere) {
  for (std::size_t gone = 0; gone < 7; ++gone) {
    Log log = sample();
    log.lines.erase(log.lines.begin() + static_cast<std::ptrdiff_t>(gone));
    const Answer answer = verify(log.bytes());
    EXPECT_EQ(answer.kind(), "missing");
    EXPECT_EQ(answer.findings.faults[0].entry, gone);
  }
}

TEST(Verify, ReorderedEntriesAreToldFromMissingOnes) {
  Log log = sample();
  std::swap(log.lines[2], log.lines[5]);
  const Answer answer = verify(log.bytes());
  EXPECT_EQ(answer.kind(), "reordered");
  EXPECT_EQ(answer.findings.faults[0].entry, 2u);
  EXPECT_NE(answer.findings.faults[0].detail.find("stands in line 6"), std::string::npos);
}

TEST(Verify, ADuplicateIsNamed) {
  for (const std::size_t of : {1u, 4u}) {
    Log log = sample();
    log.lines.insert(log.lines.begin() + 5, log.lines[of]);
    EXPECT_EQ(verify(log.bytes()).kind(), "duplicate");
  }
}

TEST(Verify, AnEntryOfAnotherSessionIsNamed) {
  Log log = sample();
  Log other;
  other.id = "0199a000-0000-7000-8000-000000000002";
  for (int i = 0; i < 8; ++i) other.add("effect:kernel", "write");
  log.lines[4] = other.lines[4];
  EXPECT_EQ(verify(log.bytes()).kind(), "transplanted");
  EXPECT_EQ(verify(other.bytes()).kind(), "transplanted"); // a whole file under another id
}

TEST(Verify, ALineAppendedAfterTheEndIsNamed) {
  Log log = sample();
  log.add("nd7", "end", R"({"exit":0})");
  log.add_checkpoint(); // the one thing that may follow
  EXPECT_TRUE(verify(log.bytes(), log.head()).result.ended);
  EXPECT_EQ(verify(log.bytes(), log.head()).kind(), "");
  EXPECT_EQ(verify(log.bytes() + "hello\n").kind(), "after_end");
  EXPECT_EQ(verify(log.bytes() + log.lines[3]).kind(), "duplicate");
  log.add("effect:kernel", "write");
  EXPECT_EQ(verify(log.bytes(), log.head()).kind(), "after_end");
}

TEST(Verify, AppendedLinesWithoutAnEndDisagreeWithTheHead) {
  Log log = sample();
  const std::string head = log.head();
  log.add("effect:kernel", "write");
  EXPECT_EQ(verify(log.bytes(), head).kind(), ""); // a crash between entry and head does this
  EXPECT_EQ(verify(log.bytes(), head).result.head, HeadState::one_behind);
  log.add("effect:kernel", "write");
  EXPECT_EQ(verify(log.bytes(), head).kind(), "head_disagrees");
  EXPECT_EQ(verify(log.bytes(), head, true).kind(), ""); // while somebody writes
}

TEST(Verify, ACutAtALineEndIsFoundByTheHead) {
  const Log log = sample();
  std::string bytes = log.bytes();
  bytes.resize(bytes.size() - log.lines[7].size() - log.lines[6].size());
  const Answer answer = verify(bytes, log.head());
  EXPECT_EQ(answer.kind(), "cut");
  EXPECT_EQ(answer.findings.faults[0].entry, 6u);
  // Without a head it cannot be seen, and the answer claims no attestation.
  const Answer blind = verify(bytes);
  EXPECT_TRUE(blind.result.consistent);
  EXPECT_EQ(blind.result.unattested_tail(), 6u);
  EXPECT_EQ(verify("", log.head()).kind(), "cut");
}

TEST(Verify, AHeadWithAnotherHashOrNoHeadAtAllIsNamed) {
  const Log log = sample();
  for (const std::string& head :
       {head_text({7, log.hashes[6]}), head_text({6, log.hashes[7]}), std::string("garbage\n"),
        std::string("7 ") + log.hashes[7], std::string("\n")}) {
    EXPECT_EQ(verify(log.bytes(), head).kind(), "head_disagrees") << head;
  }
  EXPECT_EQ(verify(log.bytes(), "").result.head, HeadState::missing);
}

TEST(Verify, ATornTailIsNoFaultButIsTold) {
  const Log log = sample();
  const std::string bytes = log.bytes();
  const std::string head = head_text({6, log.hashes[6]});
  const std::size_t whole = bytes.size() - log.lines[7].size();
  for (std::size_t size = whole + 1; size < bytes.size(); ++size) {
    const Answer answer = verify(bytes.substr(0, size), head);
    ASSERT_EQ(answer.kind(), "") << size;
    ASSERT_EQ(answer.result.torn_bytes, size - whole);
    ASSERT_EQ(answer.result.entries, 7u);
  }
  EXPECT_EQ(verify(bytes.substr(0, bytes.size() - 1), log.head()).kind(), "cut");
}

TEST(Verify, CheckpointsSayHowFarTheLogIsAttested) {
  Log log = sample();
  log.add_checkpoint();
  log.add("effect:kernel", "write");
  log.add("effect:kernel", "write");
  Answer answer = verify(log.bytes(), log.head());
  EXPECT_EQ(answer.kind(), "");
  EXPECT_EQ(answer.result.attested.entries, 8u);
  EXPECT_EQ(answer.result.attested.key_id, "k1");
  EXPECT_EQ(answer.result.attested.ts, 77);
  EXPECT_EQ(answer.result.unattested_tail(), 2u);

  log.add_checkpoint("stranger");
  answer = verify(log.bytes(), log.head());
  EXPECT_EQ(answer.kind(), "");
  EXPECT_EQ(answer.result.attested.entries, 8u);
  EXPECT_EQ(answer.result.unknown_checkpoints, 1u);
}

TEST(Verify, WrongCheckpointsAreNamed) {
  const auto with = [](std::uint64_t count, bool right_head, std::string_view signature) {
    Log log = sample();
    JsonWriter body;
    body.count("count", count).text("head", log.hashes[right_head ? 7 : 6]).text("key", "k1");
    body.text("signature", signature);
    log.add("nd7", "checkpoint", body.finish(), 77);
    return verify(log.bytes()).kind();
  };
  EXPECT_EQ(with(8, true, "00"), "bad_signature");
  EXPECT_EQ(with(7, true, "00"), "bad_checkpoint");
  EXPECT_EQ(with(8, false, "00"), "bad_checkpoint");
  // The whole chain made anew with the public algorithm: old signatures do not fit.
  Log log = sample();
  log.add_checkpoint();
  Log forged;
  forged.add("nd7", "start", R"({"agent":"none"})");
  while (forged.lines.size() < 8) forged.add("effect:kernel", "write");
  const auto old_body = scan_json_object(log.lines[8])->find("body");
  forged.add("nd7", "checkpoint", old_body, 77);
  EXPECT_EQ(verify(forged.bytes()).kind(), "bad_checkpoint");
  // Its time is signed too.
  Log late = sample();
  late.add("nd7", "checkpoint", old_body, 78);
  EXPECT_EQ(verify(late.bytes()).kind(), "bad_signature");
}

TEST(Verify, MalformedLinesAreNamed) {
  const Log log = sample(3);
  for (const char* line : {"", "{}", "[]", "null", "x", "{\"v\":1}", "\xff"}) {
    EXPECT_EQ(verify(log.bytes() + line + "\n").kind(), "malformed") << line;
  }
  std::string reordered = log.lines[1];
  const std::string ts = "\"ts\":1001,";
  reordered.erase(reordered.find(ts), ts.size());
  reordered.insert(1, ts);
  EXPECT_EQ(verify(log.lines[0] + reordered).kind(), "malformed");
}

TEST(Verify, ANewerVersionIsNotCheckedAndNotCalledBroken) {
  std::string line = sample(1).lines[0];
  line.replace(line.find("\"v\":1"), 5, "\"v\":2");
  const Answer answer = verify(line);
  EXPECT_EQ(answer.kind(), "unknown_version");
  EXPECT_FALSE(answer.result.checkable);
}

TEST(Verify, UnknownMembersAndKindsAreKept) {
  const std::string body = R"({"v":1,"session_id":")" + std::string(session) +
                           R"(","seq":0,"ts":5,"mono":6,"host":"h","zone":"x","source":"s:t",)" +
                           R"("kind":"news","prev":")" + first_link(session) + R"(","body":{})";
  const std::string entry = body + ",\"hash\":\"" + blake3_hex(body + "}") + "\"}\n";
  EXPECT_EQ(verify(entry).kind(), "");
  EXPECT_EQ(verify(entry).result.entries, 1u);
}

RC_GTEST_PROP(VerifyProperty, TheAnswerDoesNotDependOnTheChunks, ()) {
  Log log = sample(6);
  std::string bytes = log.bytes() + *rc::gen::arbitrary<std::string>();
  Findings whole_findings;
  const VerifyResult whole = verify_log(bytes, {}, whole_findings);
  Findings findings;
  Verifier verifier({}, findings);
  for (std::string_view rest = bytes; !rest.empty();) {
    const auto n = *rc::gen::inRange<std::size_t>(1, 700);
    verifier.feed(rest.substr(0, n));
    rest.remove_prefix(std::min(n, rest.size()));
  }
  const VerifyResult result = verifier.finish();
  RC_ASSERT(result.consistent == whole.consistent);
  RC_ASSERT(result.entries == whole.entries);
  RC_ASSERT(result.torn_bytes == whole.torn_bytes);
  RC_ASSERT(findings.faults.size() == whole_findings.faults.size());
  if (!findings.faults.empty()) {
    RC_ASSERT(findings.faults[0].kind == whole_findings.faults[0].kind);
    RC_ASSERT(findings.faults[0].offset_bytes == whole_findings.faults[0].offset_bytes);
  }
}

RC_GTEST_PROP(VerifyProperty, NoEditOfALineSurvives, ()) {
  Log log = sample(6);
  const auto line = *rc::gen::inRange<std::size_t>(0, 6);
  std::string& text = log.lines[line];
  const auto at = *rc::gen::inRange<std::size_t>(0, text.size() - 1);
  const auto to = *rc::gen::arbitrary<char>();
  RC_PRE(text[at] != to);
  text[at] = to;
  RC_ASSERT(!verify(log.bytes(), log.head()).result.consistent);
}

} // namespace
} // namespace nd7
