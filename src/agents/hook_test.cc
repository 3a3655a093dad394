#include "agents/hook.h"

#include <blake3.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <deque>

#include "base/bytes.h"
#include "base/json.h"

namespace nd7 {
namespace {

constexpr std::size_t keep = 64 << 10;

Intent read(AgentKind kind, std::string_view payload, std::size_t bytes = keep) {
  const Intent intent =
      read_hook(kind, {.payload = payload, .keep_content_bytes = bytes, .hook_ppid = 77});
  // What holds for every payload.
  EXPECT_TRUE(scan_json_object(intent.body)) << intent.body.substr(0, 2000);
  EXPECT_EQ(intent.body.find('\n'), std::string::npos);
  EXPECT_LE(intent.body.size(), hook_body_bytes_max(bytes));
  EXPECT_FALSE(intent.kind.empty());
  EXPECT_EQ(intent.malformed, intent.event.empty());
  return intent;
}

// The spans of a JsonObject point into its text, which is kept here.
JsonObject body(const Intent& intent) {
  static std::deque<std::string> texts;
  return scan_json_object(texts.emplace_back(intent.body)).value_or(JsonObject{});
}

std::string b3(std::string_view bytes) {
  blake3_hasher hasher;
  blake3_hasher_init(&hasher);
  blake3_hasher_update(&hasher, bytes.data(), bytes.size());
  std::array<std::uint8_t, BLAKE3_OUT_LEN> digest;
  blake3_hasher_finalize(&hasher, digest.data(), digest.size());
  return hex({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

TEST(ReadHook, KeepsMembersVerbatimAndHoists) {
  const Intent intent = read(
      AgentKind::claude,
      R"({"session_id":"abc-1","cwd":"/p","hook_event_name":"PreToolUse","x":1.500,"tool_name":"Bash","tool_input":{"command":"touch \u00e9","timeout":1e3},"tool_use_id":"toolu_1"})"
      "\n");
  EXPECT_EQ(intent.source, "intent:claude-code");
  EXPECT_EQ(intent.kind, "tool_call");
  EXPECT_EQ(intent.event, "PreToolUse");
  EXPECT_EQ(intent.agent_session, "abc-1");
  EXPECT_EQ(intent.tool_use_id, "toolu_1");
  EXPECT_EQ(intent.tool_name, "Bash");
  EXPECT_EQ(intent.command, "touch \u00e9");
  EXPECT_EQ(
      intent.body,
      R"({"session_id":"abc-1","cwd":"/p","hook_event_name":"PreToolUse","x":1.500,"tool_name":"Bash","tool_input":{"command":"touch \u00e9","timeout":1e3},"tool_use_id":"toolu_1","argv":["touch é"],"hook_ppid":77})");
}

TEST(ReadHook, KindsFollowTheEvents) {
  const auto kind_of = [](AgentKind agent, const std::string& event) {
    return read(agent, R"({"hook_event_name":")" + event + R"("})").kind;
  };
  for (const AgentKind agent : {AgentKind::claude, AgentKind::codex}) {
    EXPECT_EQ(kind_of(agent, "SessionStart"), "session_start");
    EXPECT_EQ(kind_of(agent, "UserPromptSubmit"), "prompt");
    EXPECT_EQ(kind_of(agent, "PreToolUse"), "tool_call");
    EXPECT_EQ(kind_of(agent, "PostToolUse"), "tool_result");
    EXPECT_EQ(kind_of(agent, "Stop"), "turn_end");
    EXPECT_EQ(kind_of(agent, "SessionEnd"), "session_end");
    EXPECT_EQ(kind_of(agent, "SubagentStop"), "hook");
    EXPECT_EQ(kind_of(agent, "NotYetInvented"), "hook");
  }
  EXPECT_EQ(kind_of(AgentKind::claude, "PostToolUseFailure"), "tool_result");
}

TEST(ReadHook, SaysHowAToolEndedOnlyWhereTheAgentDoes) {
  const auto ok = [](AgentKind agent, const std::string& rest) {
    return std::string(body(read(agent, "{" + rest + "}")).find("ok"));
  };
  EXPECT_EQ(ok(AgentKind::claude, R"("hook_event_name":"PostToolUse")"), "true");
  EXPECT_EQ(ok(AgentKind::claude, R"("hook_event_name":"PostToolUseFailure")"), "false");
  const std::string post = R"("hook_event_name":"PostToolUse",)";
  EXPECT_EQ(ok(AgentKind::codex, post + R"("tool_name":"Bash","tool_response":"fail\n")"), "null");
  EXPECT_EQ(ok(AgentKind::codex,
               post + R"("tool_name":"apply_patch","tool_response":"Exit code: 0\nWall time")"),
            "true");
  EXPECT_EQ(ok(AgentKind::codex,
               post + R"("tool_name":"apply_patch","tool_response":"Exit code: 1\nWall time")"),
            "false");
  EXPECT_EQ(
      ok(AgentKind::codex, post + R"("tool_name":"mcp__a__b","tool_response":{"isError":true})"),
      "false");
  EXPECT_EQ(ok(AgentKind::claude, R"("hook_event_name":"Stop")"), "");
}

TEST(ReadHook, PathsOfFileToolsAreAbsolute) {
  const auto paths = [](AgentKind agent, const std::string& tool, const std::string& input) {
    return read(agent, R"({"hook_event_name":"PreToolUse","cwd":"/p/q","tool_name":")" + tool +
                           R"(","tool_input":)" + input + "}")
        .paths;
  };
  using Paths = std::vector<std::string>;
  EXPECT_EQ(paths(AgentKind::claude, "Write", R"({"file_path":"/a/./b/../c"})"), Paths{"/a/c"});
  EXPECT_EQ(paths(AgentKind::claude, "Edit", R"({"file_path":"x"})"), Paths{"/p/q/x"});
  EXPECT_EQ(paths(AgentKind::claude, "MultiEdit", R"({"file_path":"../../../x"})"), Paths{"/x"});
  EXPECT_EQ(paths(AgentKind::claude, "NotebookEdit", R"({"notebook_path":"n.ipynb"})"),
            Paths{"/p/q/n.ipynb"});
  EXPECT_EQ(paths(AgentKind::claude, "Read", R"({"file_path":"/etc/passwd"})"), Paths{});
  EXPECT_EQ(paths(AgentKind::claude, "Write", R"({"file_path":7})"), Paths{});
  EXPECT_EQ(paths(AgentKind::claude, "Write", R"(["file_path"])"), Paths{});
  EXPECT_EQ(
      paths(
          AgentKind::codex, "apply_patch",
          R"({"command":"*** Begin Patch\n*** Add File: new.txt\n+*** Add File: no\n*** Update File: /abs\n*** Move to: d/to\r\n@@\n-*** Delete File: no\n*** Delete File: old \n*** End Patch\n"})"),
      (Paths{"/p/q/new.txt", "/abs", "/p/q/d/to", "/p/q/old"}));
}

TEST(ReadHook, CutsLongContentWithLengthAndHash) {
  const std::string content(3 * keep, 'x');
  const Intent intent = read(
      AgentKind::claude,
      R"({"hook_event_name":"PreToolUse","tool_name":"Write","tool_input":{"file_path":"/f","content":")" +
          content + R"("},"tool_use_id":"t"})");
  EXPECT_EQ(intent.kind, "tool_call");
  EXPECT_EQ(intent.paths, std::vector<std::string>{"/f"});
  const JsonObject object = body(intent);
  EXPECT_EQ(object.text("tool_use_id"), "t");
  const auto input = scan_json_object(object.find("tool_input"));
  ASSERT_TRUE(input);
  EXPECT_EQ(input->text("file_path"), "/f");
  EXPECT_EQ(input->text("content"), content.substr(0, keep));
  const auto cuts = scan_json_array(object.find("cut"));
  ASSERT_TRUE(cuts);
  ASSERT_EQ(cuts->size(), 1U);
  const auto cut = scan_json_object(cuts->front());
  EXPECT_EQ(cut->text("at"), "/tool_input/content");
  EXPECT_EQ(cut->integer("length"), static_cast<std::int64_t>(content.size()));
  EXPECT_EQ(cut->text("blake3"), b3(content));
}

TEST(ReadHook, CutsBetweenCharactersAndPointsByRfc6901) {
  std::string content = "a";
  for (int i = 0; i < 400; ++i) content += "\u20ac";
  ASSERT_GT(content.size(), 1024U); // shorter members stay whole
  const JsonObject object = body(read(
      AgentKind::claude, R"({"hook_event_name":"Stop","a/b~c":{"d":")" + content + R"("}})", 32));
  const auto inner = scan_json_object(object.find("a/b~c"));
  ASSERT_TRUE(inner);
  const std::string kept = inner->text("d");
  EXPECT_EQ(kept, content.substr(0, 31));
  EXPECT_EQ(scan_json_object(scan_json_array(object.find("cut"))->front())->text("at"),
            "/a~1b~0c/d");
}

TEST(ReadHook, NeverLosesTheCallIdBehindManyLongValues) {
  std::string input = "{";
  for (int i = 0; i < 40; ++i) {
    input +=
        (i > 0 ? "," : "") + ("\"k" + std::to_string(i)) + "\":\"" + std::string(keep, 'y') + "\"";
  }
  const Intent intent = read(AgentKind::claude, R"({"hook_event_name":"PreToolUse","tool_input":)" +
                                                    input + R"(},"tool_use_id":"last"})");
  EXPECT_EQ(body(intent).text("tool_use_id"), "last");
  EXPECT_LT(intent.body.size(), 6 * keep);
}

TEST(ReadHook, OneLineWhateverTheWhiteSpace) {
  const Intent intent =
      read(AgentKind::claude, "{\r\n \"hook_event_name\" : \"Stop\",\n \"a\": [1,\n2,\r\n3]}\n");
  EXPECT_EQ(body(intent).find("a"), "[1, 2,  3]");
}

TEST(ReadHook, ThePayloadCannotSpeakInOurNames) {
  const JsonObject object = body(read(
      AgentKind::claude,
      R"({"hook_event_name":"PreToolUse","tool_name":"Bash","argv":["ls"],"malformed":false,"hook_ppid":1,"tool_input":{"command":"rm x"}})"));
  EXPECT_EQ(object.find("argv"), R"(["rm x"])");
  EXPECT_EQ(object.find("agent_argv"), R"(["ls"])");
  EXPECT_EQ(object.integer("hook_ppid"), 77);
  EXPECT_FALSE(object.has("malformed"));
}

TEST(ReadHook, UnsafeSessionIdsAreNotUsed) {
  for (const char* id : {"../../etc", "a/b", ".", "..", "", "a b", "x\\u0000"}) {
    EXPECT_EQ(read(AgentKind::codex,
                   std::string(R"({"hook_event_name":"Stop","session_id":")") + id + R"("})")
                  .agent_session,
              "");
  }
}

TEST(ReadHook, MalformedIsKeptAndBounded) {
  const std::string nul("{\"hook_event_name\":\"a\0b\"}", 25);
  const std::string deep =
      R"({"hook_event_name":"Stop","a":)" + std::string(20000, '[') + std::string(20000, ']') + "}";
  const std::vector<std::string> payloads = {
      "",
      "null",
      "[]",
      "{}",
      R"({"hook_event_name":7})",
      R"({"hook_event_name":"Stop")",
      R"({"hook_event_name":"Stop","hook_event_name":"PreToolUse"})",
      R"({"hook_event_name":"Stop","a":{"b":1,"b":2}})",
      R"({"hook_event_name":"Stop","a":"\ud800"})",
      R"({"hook_event_name":"Stop","a":NaN})",
      "{\"hook_event_name\":\"Stop\",\"a\":\"\xff\"}",
      "\xef\xbb\xbf{\"hook_event_name\":\"Stop\"}",
      R"({"hook_event_name":"Stop"} {"hook_event_name":"Stop"})",
      nul,
      deep,
  };
  for (const std::string& payload : payloads) {
    SCOPED_TRACE(payload.substr(0, 80));
    const Intent intent = read(AgentKind::claude, payload);
    EXPECT_TRUE(intent.malformed);
    EXPECT_EQ(intent.kind, "hook");
    const JsonObject object = body(intent);
    EXPECT_TRUE(object.boolean("malformed"));
    EXPECT_EQ(object.integer("length"), static_cast<std::int64_t>(payload.size()));
    EXPECT_EQ(object.text("blake3"), b3(payload));
    EXPECT_EQ(object.has("payload") ? object.text("payload")
                                    : base64_decode(object.text("payload_b64")),
              payload.substr(0, keep));
  }
}

TEST(ReadHook, HugePayloadsAreBounded) {
  const std::string big =
      R"({"hook_event_name":"PreToolUse","tool_name":"Write","tool_input":{"content":")" +
      std::string(std::size_t{100} << 20, 'z') + R"("}})";
  const Intent intent = read(AgentKind::claude, big);
  EXPECT_TRUE(intent.malformed);
  EXPECT_EQ(body(intent).text("blake3"), b3(big));
  std::string many = R"({"hook_event_name":"Stop","a":{"k":0)";
  for (int i = 0; i < 1'200'000; ++i) many += ",\"" + std::to_string(i) + "\":1";
  many += "}}";
  EXPECT_TRUE(read(AgentKind::codex, many).malformed);
  // Half as many are read, and cut.
  std::string fewer = R"({"hook_event_name":"Stop","a":{"k":0)";
  for (int i = 0; i < 500'000; ++i) fewer += ",\"" + std::to_string(i) + "\":1";
  fewer += "}}";
  EXPECT_EQ(read(AgentKind::codex, fewer).kind, "turn_end");
}

RC_GTEST_PROP(ReadHook, AnyBytesGiveOneStrictLine, (std::string bytes, bool wrapped)) {
  const std::string payload =
      wrapped ? R"({"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":)" +
                    json_quote(bytes) + "}}"
              : bytes;
  for (const AgentKind agent : {AgentKind::claude, AgentKind::codex}) {
    const Intent intent = read_hook(agent, {.payload = payload, .keep_content_bytes = 16});
    RC_ASSERT(static_cast<bool>(scan_json_object(intent.body)));
    RC_ASSERT(intent.body.find('\n') == std::string::npos);
    RC_ASSERT(intent.malformed != wrapped);
  }
}

} // namespace
} // namespace nd7
