// decide() and its like: order of the rules, guards and exceptions, names of hosts, words for a
// shell; and the index against looking at all rules.
#include "core/policy.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/credentials.h"
#include "core/guarded.h"

namespace nd7 {
namespace {

Rule make(Effect effect, Shape shape, std::string path, Origin origin = Origin::builtin,
          std::string scope = {}, std::uint32_t order = 0) {
  Rule rule;
  rule.effect = effect;
  rule.shape = shape;
  rule.path = std::move(path);
  rule.scope = std::move(scope);
  rule.origin = origin;
  rule.order = order;
  if (shape == Shape::glob) {
    Result<Glob> glob = Glob::parse(rule.path);
    EXPECT_TRUE(glob.has_value()) << rule.path;
    if (glob) rule.compiled = std::make_shared<const Glob>(std::move(*glob));
  }
  return rule;
}

FileAction asked(Access access, std::string path) {
  FileAction out;
  out.access = access;
  out.path = std::move(path);
  return out;
}
FileAction reading(std::string path) {
  return asked(Access::read, std::move(path));
}
FileAction writing(std::string path) {
  return asked(Access::write, std::move(path));
}

// A session of Claude Code in /home/u/p, with the real tables.
Policy session() {
  Policy policy;
  policy.home = "/home/u";
  policy.project = "/home/u/p";
  CredentialInput credentials;
  credentials.homes = {"/home/u"};
  credentials.agent = "claude";
  policy.rules = credential_rules(credentials);
  WriteInput write;
  write.homes = {"/home/u"};
  write.project = "/home/u/p";
  write.claude_dir = "/home/u/.claude";
  write.claude_json = "/home/u/.claude.json";
  write.codex_dir = "/home/u/.codex";
  write.agent = "claude";
  write.uid = 1000;
  write.tmp = "/tmp/nd7-1000/ID";
  write.cache = "/home/u/.cache/nd7/K";
  write.own_places = {"/home/u/.local/state/nd7", "/home/u/.config/nd7"};
  write.program_files = {"/usr/bin/nd7"};
  for (Rule& rule : write_rules(write)) policy.rules.push_back(std::move(rule));
  return policy;
}

bool reads(const Policy& policy, const char* path) {
  return decide(policy, reading(path)).allowed();
}
bool writes(const Policy& policy, const char* path) {
  return decide(policy, writing(path)).allowed();
}

TEST(Decide, ASessionAsItStarts) {
  const Policy policy = session();
  EXPECT_TRUE(writes(policy, "/home/u/p"));
  EXPECT_TRUE(writes(policy, "/home/u/p/src/a.c"));
  EXPECT_TRUE(writes(policy, "/tmp/nd7-1000/ID/x"));
  EXPECT_TRUE(writes(policy, "/home/u/.claude/todos/1"));
  EXPECT_FALSE(writes(policy, "/home/u/pp/a.c"));
  EXPECT_FALSE(writes(policy, "/home/u/.bashrc"));
  EXPECT_FALSE(writes(policy, "/etc/passwd"));
  EXPECT_FALSE(writes(policy, "/"));
  EXPECT_TRUE(reads(policy, "/etc/passwd"));
  EXPECT_TRUE(reads(policy, "/"));
  EXPECT_TRUE(reads(policy, "/home/u/q/a.c"));
  EXPECT_FALSE(reads(policy, "/home/u/.ssh/id_ed25519"));
  EXPECT_FALSE(reads(policy, "/home/u/.ssh"));
  EXPECT_TRUE(reads(policy, "/home/u/.sshx"));
  EXPECT_FALSE(reads(policy, "/home/u/.codex/auth.json"));
  EXPECT_TRUE(reads(policy, "/home/u/.claude/.credentials.json"));
  EXPECT_FALSE(reads(policy, "/home/u/.local/state/nd7/sessions/x/events.ndjson"));
}

TEST(Decide, AnExceptionInsideAClosedPlaceIsReadable) {
  const Policy policy = session();
  EXPECT_TRUE(reads(policy, "/home/u/.ssh/known_hosts"));
  EXPECT_TRUE(reads(policy, "/home/u/.ssh/id_ed25519.pub"));
  EXPECT_TRUE(reads(policy, "/home/u/.ssh/config"));
}

TEST(Decide, OwnWriteAsksWhoMadeIt) {
  const Policy policy = session();
  FileAction action = writing("/tmp/other/x");
  EXPECT_FALSE(decide(policy, action).allowed());
  EXPECT_EQ(decide(policy, action).open_with, "nd7 allow /tmp/other/x");
  action.made_by_session = true;
  EXPECT_TRUE(decide(policy, action).allowed());
}

TEST(Decide, NothingReopensNever) {
  Policy policy = session();
  for (const char* path : {"/", "/home/u/.local/state/nd7", "/home/u/.local/state/nd7/keys"}) {
    policy.rules.push_back(make(Effect::allow_write, Shape::subtree, path, Origin::live, "", 9));
    policy.rules.push_back(make(Effect::allow_read, Shape::subtree, path, Origin::live, "", 9));
  }
  for (const FileAction& action :
       {writing("/home/u/.local/state/nd7/keys/k"), reading("/home/u/.local/state/nd7/keys/k"),
        writing("/usr/bin/nd7"), writing("/home/u/p/.nd7.toml")}) {
    const Verdict verdict = decide(policy, action);
    EXPECT_FALSE(verdict.allowed()) << action.path;
    EXPECT_EQ(verdict.open_with, "") << action.path;
  }
}

TEST(Decide, LaterLiveRuleWinsThenOptionsThenFiles) {
  Policy policy = session();
  const auto add = [&](Effect effect, Origin origin, std::uint32_t order) {
    policy.rules.push_back(make(effect, Shape::subtree, "/data", origin, "", order));
  };
  add(Effect::allow_write, Origin::policy_file, 0);
  EXPECT_TRUE(writes(policy, "/data/x"));
  add(Effect::deny_write, Origin::project_file, 0); // in files a refusal wins
  EXPECT_FALSE(writes(policy, "/data/x"));
  add(Effect::allow_write, Origin::start_option, 1);
  EXPECT_TRUE(writes(policy, "/data/x"));
  add(Effect::deny_write, Origin::live, 2);
  EXPECT_FALSE(writes(policy, "/data/x"));
  EXPECT_EQ(decide(policy, writing("/data/d/x")).open_with, "nd7 allow /data/d");
  add(Effect::allow_write, Origin::live, 3);
  EXPECT_TRUE(writes(policy, "/data/x"));
  EXPECT_FALSE(writes(policy, "/datas"));
}

TEST(Decide, GuardsHoldAtAnyDepthAndIgnoreCase) {
  const Policy policy = session();
  for (const char* path :
       {"/home/u/p/.git/hooks/pre-commit", "/home/u/p/vendor/y/.git/hooks/post-checkout",
        "/home/u/p/.envrc", "/home/u/p/.ENVRC", "/home/u/p/.vscode/tasks.json"}) {
    const Verdict verdict = decide(policy, writing(path));
    EXPECT_EQ(verdict.decision, Decision::deny) << path;
    EXPECT_FALSE(verdict.open_with.empty()) << path;
  }
  EXPECT_TRUE(writes(policy, "/home/u/p/.git/objects/ab/cd"));
  EXPECT_EQ(decide(policy, writing("/home/u/p/.git/config")).decision, Decision::judge);
}

TEST(Decide, AnExceptionIsThatFileAlone) {
  const Policy policy = session();
  EXPECT_TRUE(writes(policy, "/home/u/p/.git/hooks/pre-commit.sample"));
  EXPECT_FALSE(writes(policy, "/home/u/p/.git/hooks/x.sample/pre-commit"));
  EXPECT_FALSE(writes(policy, "/home/u/p/.git/hooks/x.sample/.git/hooks/pre-commit"));
}

TEST(Decide, AGuardIsReopenedByNameOnly) {
  Policy policy = session();
  const auto granted = [&](const char* grant, const char* path) {
    Policy with = policy;
    with.rules.push_back(make(Effect::allow_write, Shape::subtree, grant, Origin::live, "", 1));
    return writes(with, path);
  };
  const char* hook = "/home/u/p/.git/hooks/pre-commit";
  EXPECT_FALSE(granted("/home/u/p", hook));
  EXPECT_FALSE(granted("/home/u/p/.git", hook));
  EXPECT_FALSE(granted("/", hook));
  EXPECT_TRUE(granted("/home/u/p/.git/hooks", hook));
  EXPECT_TRUE(granted(hook, hook));
  EXPECT_FALSE(granted("/home/u/p/.git/hooks/post-merge", hook));
  EXPECT_TRUE(granted("/home/u/p/.envrc", "/home/u/p/.envrc"));
  EXPECT_FALSE(granted("/home/u/p/.envrc", "/home/u/p/sub/.envrc"));
}

TEST(Decide, AnotherNameOfTheSameObject) {
  Policy policy = session();
  const ObjectId key{1, 42};
  for (Rule& rule : policy.rules)
    if (rule.effect == Effect::deny_read && rule.path == "/home/u/.netrc") rule.objects = {key};
  FileAction link = reading("/home/u/p/harmless");
  EXPECT_TRUE(decide(policy, link).allowed());
  link.exists = true;
  link.object = key;
  EXPECT_FALSE(decide(policy, link).allowed());
  const auto with = [&](const char* grant) {
    Policy other = policy;
    other.rules.push_back(make(Effect::allow_read, Shape::subtree, grant, Origin::live, "", 1));
    return decide(other, link).allowed();
  };
  EXPECT_FALSE(with("/home/u/p"));
  EXPECT_TRUE(with("/home/u/p/harmless"));
  EXPECT_FALSE(with("/home/u/.netrc")); // grants hold by name
  EXPECT_TRUE(with("/home/u"));
}

TEST(Decide, WithoutACompiledGlobARuleHoldsEverywhere) {
  Policy policy = session();
  Rule rule = make(Effect::deny_write, Shape::subtree, "*.lock", Origin::policy_file);
  rule.shape = Shape::glob;
  policy.rules.push_back(rule);
  EXPECT_FALSE(writes(policy, "/home/u/p/a"));
  compile(policy);
  EXPECT_FALSE(writes(policy, "/home/u/p/a"));
}

TEST(Decide, TheCommandNamesTheDirectoryUnlessThatIsTooMuch) {
  const Policy policy = session();
  const auto open_with = [&](const char* path) { return decide(policy, writing(path)).open_with; };
  EXPECT_EQ(open_with("/home/u/data/2026/x"), "nd7 allow ~/data/2026");
  EXPECT_EQ(open_with("/home/u/.bashrc"), "nd7 allow ~/.bashrc");
  EXPECT_EQ(open_with("/etc/hosts"), "nd7 allow /etc/hosts");
  EXPECT_EQ(open_with("/srv/a/b"), "nd7 allow /srv/a");
  EXPECT_EQ(open_with("/home/u/my data/x"), "nd7 allow ~/'my data'");
}

ConnectAction connecting(const char* address, std::uint16_t port, std::string name = {}) {
  ConnectAction out;
  out.address = parse_address(address, port).value();
  out.name = std::move(name);
  return out;
}

TEST(DecideConnect, PublicHttpsOnly) {
  Policy policy;
  const auto ok = [&](const ConnectAction& action) {
    return decide_connect(policy, action).allowed();
  };
  EXPECT_TRUE(ok(connecting("93.184.216.34", 443)));
  EXPECT_TRUE(ok(connecting("2606:2800::1", 443)));
  for (const char* inward :
       {"10.0.0.1", "192.168.1.1", "172.16.0.1", "100.64.0.1", "fc00::1", "127.0.0.1", "::1",
        "0.0.0.0", "169.254.169.254", "fe80::1", "fd00:ec2::254", "224.0.0.1", "::ffff:10.0.0.1",
        "64:ff9b::a00:1", "2002:a00:1::1", "::ffff:127.0.0.1", "240.0.0.1"})
    EXPECT_FALSE(ok(connecting(inward, 443))) << inward;
  EXPECT_FALSE(ok(connecting("93.184.216.34", 80)));
  EXPECT_EQ(decide_connect(policy, connecting("93.184.216.34", 80, "a.test")).open_with,
            "nd7 allow --host a.test:80");
  EXPECT_EQ(decide_connect(policy, connecting("2606:2800::1", 80)).open_with,
            "nd7 allow --host '[2606:2800::1]:80'");
  EXPECT_EQ(decide_connect(policy, connecting("169.254.169.254", 443)).open_with, "");
  ConnectAction neighbour = connecting("93.184.216.34", 443);
  neighbour.local_machine = true;
  EXPECT_FALSE(ok(neighbour));
}

TEST(DecideConnect, Grants) {
  Policy policy;
  policy.hosts = {{"db.test", 5432, Origin::live},
                  {"*.corp.test", 443, Origin::policy_file},
                  {"10.1.2.3", 8080, Origin::start_option}};
  const auto ok = [&](const ConnectAction& action) {
    return decide_connect(policy, action).allowed();
  };
  EXPECT_TRUE(ok(connecting("10.0.0.1", 5432, "db.test")));
  EXPECT_FALSE(ok(connecting("10.0.0.1", 5433, "db.test")));
  EXPECT_TRUE(ok(connecting("10.0.0.1", 443, "a.b.corp.test")));
  EXPECT_FALSE(ok(connecting("10.0.0.1", 443, "corp.test")));
  EXPECT_FALSE(ok(connecting("10.0.0.1", 443, "xcorp.test")));
  EXPECT_TRUE(ok(connecting("10.1.2.3", 8080)));
  EXPECT_TRUE(ok(connecting("::ffff:10.1.2.3", 8080)));
  EXPECT_FALSE(ok(connecting("10.1.2.4", 8080)));
  // No grant of a name leads to a metadata service or to this machine.
  EXPECT_FALSE(ok(connecting("169.254.169.254", 5432, "db.test")));
  EXPECT_FALSE(ok(connecting("127.0.0.1", 5432, "db.test")));
  policy.ports = {{5432, Origin::live}};
  EXPECT_TRUE(ok(connecting("127.0.0.1", 5432)));
  ConnectAction own = connecting("127.0.0.1", 3000);
  EXPECT_FALSE(ok(own));
  own.own_listener = true;
  EXPECT_TRUE(ok(own));
}

TEST(DecideConnect, NamedHostsOnly) {
  Policy policy;
  policy.only_hosts = true;
  policy.hosts = {{"github.com", 443, Origin::policy_file},
                  {"agent.test", 443, Origin::builtin},
                  {"project.test", 443, Origin::project_file}};
  const auto ok = [&](const char* address, const char* name, std::uint16_t port = 443) {
    return decide_connect(policy, connecting(address, port, name)).allowed();
  };
  for (const char* name : {"github.com", "agent.test", "project.test"})
    EXPECT_TRUE(ok("93.184.216.34", name)) << name;
  EXPECT_FALSE(ok("93.184.216.34", "evil.test"));
  EXPECT_FALSE(ok("93.184.216.34", ""));
  // Only a person's grant leads to a private address.
  EXPECT_TRUE(ok("10.0.0.1", "github.com"));
  EXPECT_FALSE(ok("10.0.0.1", "agent.test"));
  EXPECT_FALSE(ok("10.0.0.1", "project.test"));
  EXPECT_TRUE(host_granted(policy, "github.com"));
  EXPECT_FALSE(host_granted(policy, "agent.test"));
  EXPECT_FALSE(host_granted(policy, "project.test"));
}

TEST(DecideListenAndSocket, GrantedOrOwn) {
  Policy policy;
  policy.home = "/home/u";
  EXPECT_TRUE(decide_listen(policy, parse_address("127.0.0.1", 80).value()).allowed());
  const Address all = parse_address("0.0.0.0", 3000).value();
  EXPECT_FALSE(decide_listen(policy, all).allowed());
  EXPECT_EQ(decide_listen(policy, all).open_with, "nd7 allow --listen 0.0.0.0:3000");
  policy.listens = {{all, Origin::live}};
  EXPECT_TRUE(decide_listen(policy, all).allowed());
  EXPECT_FALSE(decide_listen(policy, parse_address("0.0.0.0", 3001).value()).allowed());
  EXPECT_FALSE(decide_socket(policy, "/run/docker.sock", false).allowed());
  EXPECT_TRUE(decide_socket(policy, "/run/x", true).allowed());
  EXPECT_EQ(decide_socket(policy, "@bus", false).open_with, "");
  policy.sockets = {make(Effect::allow_write, Shape::subtree, "/run/a", Origin::live)};
  EXPECT_TRUE(decide_socket(policy, "/run/a/s", false).allowed());
  EXPECT_FALSE(decide_socket(policy, "/run/ab", false).allowed());
}

std::vector<std::string> rests(const Policy& policy, const char* path) {
  std::vector<std::string> out;
  for (const Remainder& remainder : remainders_below(policy, path))
    if (std::find(out.begin(), out.end(), remainder.relative) == out.end())
      out.push_back(remainder.relative);
  std::sort(out.begin(), out.end());
  return out;
}

TEST(RemaindersBelow, WhatMustNotLieBelowANewName) {
  Policy policy;
  policy.rules = {
      make(Effect::guarded, Shape::suffix, ".git/hooks/*", Origin::builtin, "/p"),
      make(Effect::guarded, Shape::suffix, ".vscode/tasks.json", Origin::builtin, "/p"),
      make(Effect::never_write, Shape::exact, "/p/.claude/settings.json"),
      make(Effect::allow_write, Shape::subtree, "/p/x/y"),
      make(Effect::deny_read, Shape::glob, "/profiles/*/keys.db", Origin::builtin, "/h"),
      make(Effect::deny_read, Shape::glob, "*.key", Origin::policy_file, "/h")};
  using Texts = std::vector<std::string>;
  EXPECT_EQ(rests(policy, "/p/.git"), Texts{"hooks/*"});
  EXPECT_EQ(rests(policy, "/p/a/.GIT"), Texts{"hooks/*"});
  EXPECT_EQ(rests(policy, "/p/.git/hooks"), Texts{"*"});
  EXPECT_EQ(rests(policy, "/q/.git"), Texts{});
  EXPECT_EQ(rests(policy, "/p/.vscode"), Texts{"tasks.json"});
  EXPECT_EQ(rests(policy, "/p/.claude"), Texts{"settings.json"});
  EXPECT_EQ(rests(policy, "/p/x"), Texts{});
  EXPECT_EQ(rests(policy, "/h/profiles"), Texts{"*/keys.db"});
  EXPECT_EQ(rests(policy, "/h/profiles/any"), Texts{"keys.db"});
  EXPECT_EQ(rests(policy, "/h"), Texts{"profiles/*/keys.db"});
  EXPECT_EQ(rests(policy, "/h/profiles/any/keys.db"), Texts{});
  EXPECT_EQ(rests(policy, "/"), (Texts{"h/profiles/*/keys.db", "p/.claude/settings.json"}));
}

// What the words mean: a rule covers NAME/REST exactly when REST is among the remainders of NAME.
RC_GTEST_PROP(RemaindersBelow, AgreeWithWhatTheRuleCovers, ()) {
  const auto name = rc::gen::element<std::string>("a", "b", "c");
  const auto path_of = [&](std::size_t n) {
    std::string out;
    for (std::size_t i = 0; i < n; ++i) out += (out.empty() ? "" : "/") + *name;
    return out;
  };
  Policy policy;
  const std::string pattern = path_of(*rc::gen::inRange<std::size_t>(1, 4));
  policy.rules = {make(Effect::guarded, Shape::suffix, pattern, Origin::builtin, "/p")};
  const std::string at = "/p/" + path_of(*rc::gen::inRange<std::size_t>(1, 4));
  const std::string rest = path_of(*rc::gen::inRange<std::size_t>(1, 4));
  if (decide(policy, writing(at)).rule != "outside the project") return; // covered as a whole
  const auto found = remainders_below(policy, at);
  const bool listed = std::any_of(found.begin(), found.end(), [&](const Remainder& remainder) {
    return (rest + "/").starts_with(remainder.relative + "/");
  });
  // The suffix may also lie in `rest` alone: that holds wherever it is and is no remainder.
  const bool inside = ("/" + rest + "/").contains("/" + pattern + "/");
  const bool covered = decide(policy, writing(at + "/" + rest)).rule != "outside the project";
  RC_ASSERT(covered == (listed || inside));
}

TEST(DeniesReadBelow, OnlyWhereSomethingCanBeClosed) {
  const Policy policy = session();
  EXPECT_TRUE(denies_read_below(policy, "/"));
  EXPECT_TRUE(denies_read_below(policy, "/home/u"));
  EXPECT_TRUE(denies_read_below(policy, "/home/u/.ssh"));
  EXPECT_TRUE(denies_read_below(policy, "/home/u/.ssh/x"));
  EXPECT_TRUE(denies_read_below(policy, "/home/u/.config"));
  EXPECT_FALSE(denies_read_below(policy, "/home/u/p"));
  EXPECT_FALSE(denies_read_below(policy, "/usr"));
  Policy with = policy;
  with.rules.push_back(
      make(Effect::deny_read, Shape::glob, ".env", Origin::policy_file, "/home/u/p"));
  EXPECT_TRUE(denies_read_below(with, "/home/u/p"));
  EXPECT_TRUE(denies_read_below(with, "/home/u/p/a/b"));
  EXPECT_FALSE(denies_read_below(with, "/usr"));
}

TEST(ShellWord, QuotesWhatAShellWouldTouch) {
  EXPECT_EQ(shell_word("/a/b-c_d.e"), "/a/b-c_d.e");
  EXPECT_EQ(shell_word("~/x"), "~/x");
  EXPECT_EQ(shell_word("~/my data"), "~/'my data'");
  EXPECT_EQ(shell_word("~root"), "'~root'");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("/a\nb"), "$'/a\\x0ab'");
  EXPECT_EQ(shell_word("~/\x1b[31m'"), "~/$'\\x1b[31m\\''");
}

// bash reads the word back as the very bytes.
TEST(ShellWord, BashReadsItBack) {
  std::string script;
  std::vector<std::string> words;
  std::uint32_t state = 12345;
  for (int i = 0; i < 300; ++i) {
    std::string word = i % 3 == 0 ? "~/" : "/";
    for (int n = 0; n < 8; ++n) {
      state = state * 1664525 + 1013904223;
      static constexpr std::string_view letters =
          "ab '\"\\$`!*?[]{}~#&;|<>()\n\t\x1b\xc3\xa9\xff=%^";
      word += letters[(state >> 16) % letters.size()];
    }
    script += "printf '%s\\0' " + shell_word(word) + "\n";
    words.push_back(word.starts_with("~/") ? "/h" + word.substr(1) : word);
  }
  const std::string file = ::testing::TempDir() + "/nd7_words_" + std::to_string(std::rand());
  std::FILE* out = std::fopen(file.c_str(), "w");
  ASSERT_NE(out, nullptr);
  std::fwrite(script.data(), 1, script.size(), out);
  std::fclose(out);
  std::FILE* pipe = popen(("HOME=/h bash " + file + " 2>/dev/null").c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string answer;
  std::array<char, 4096> buffer;
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe))
    answer.append(buffer.data(), n);
  if (pclose(pipe) != 0 || answer.empty()) GTEST_SKIP() << "no bash here";
  std::remove(file.c_str());
  std::size_t at = 0;
  for (const std::string& word : words) {
    const std::size_t end = answer.find('\0', at);
    ASSERT_NE(end, std::string::npos);
    EXPECT_EQ(answer.substr(at, end - at), word);
    at = end + 1;
  }
}

// --- the index -----------------------------------------------------------------------------------

rc::Gen<std::string> place_gen() {
  const auto name = rc::gen::element<std::string>("a", "b", "ab", ".git", "hooks", "A", "x.y");
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(name),
                      [](const std::vector<std::string>& names) {
                        std::string out;
                        for (std::size_t i = 0; i < names.size() && i < 5; ++i)
                          out += "/" + names[i];
                        return out.empty() ? std::string("/") : out;
                      });
}

Rule any_rule() {
  static constexpr std::array patterns = {"*.y",  "/a/*", "a/b",   "/[ab]/x.y", "**/hooks",  "a/**",
                                          "/a*/", "*",    "/.git", "?b",        "/ab/[a-z]*"};
  static constexpr std::array suffixes = {".git/hooks/*", "hooks", "*", "*/a", ".GIT/a*", "a/b"};
  const auto shape =
      *rc::gen::element(Shape::subtree, Shape::exact, Shape::below, Shape::suffix, Shape::glob);
  const auto effect = *rc::gen::element(Effect::never_write, Effect::never_read, Effect::guarded,
                                        Effect::judged, Effect::allow_write, Effect::own_write,
                                        Effect::deny_write, Effect::allow_read, Effect::deny_read);
  const auto origin = *rc::gen::element(Origin::builtin, Origin::start_option, Origin::policy_file,
                                        Origin::project_file, Origin::live);
  std::string path = *place_gen(), scope;
  if (shape == Shape::suffix || shape == Shape::glob) {
    scope = *rc::gen::inRange(0, 4) == 0 ? std::string() : std::move(path);
    path = shape == Shape::glob ? patterns[*rc::gen::inRange<std::size_t>(0, patterns.size())]
                                : suffixes[*rc::gen::inRange<std::size_t>(0, suffixes.size())];
  }
  Rule rule = make(effect, shape, path, origin, scope, *rc::gen::inRange(0u, 3u));
  if (*rc::gen::inRange(0, 5) == 0) rule.objects = {{1, *rc::gen::inRange<std::uint64_t>(1, 4)}};
  return rule;
}

RC_GTEST_PROP(PolicyIndex, DecidesAsLookingAtAllRulesDoes, ()) {
  Policy plain;
  plain.home = "/a";
  plain.project = "/a/b";
  const auto rules = *rc::gen::inRange(0, 40);
  for (int i = 0; i < rules; ++i) plain.rules.push_back(any_rule());
  Policy indexed = plain;
  compile(indexed);
  ASSERT_EQ(indexed.index.get()->rules(), plain.rules.size());
  for (int i = 0; i < 20; ++i) {
    FileAction action = asked(*rc::gen::element(Access::read, Access::write), *place_gen());
    action.exists = *rc::gen::arbitrary<bool>();
    action.is_directory = *rc::gen::arbitrary<bool>();
    action.made_by_session = *rc::gen::arbitrary<bool>();
    action.object = {1, *rc::gen::inRange<std::uint64_t>(1, 5)};
    const Verdict a = decide(plain, action), b = decide(indexed, action);
    RC_ASSERT(a.decision == b.decision);
    RC_ASSERT(a.rule == b.rule);
    RC_ASSERT(a.open_with == b.open_with);
    RC_ASSERT(a.judge == b.judge);
  }
}

TEST(PolicyIndex, AgreesOnEveryPlaceOfARealSession) {
  const Policy plain = session();
  Policy indexed = plain;
  compile(indexed);
  std::vector<std::string> paths = {"/", "/home", "/home/u", "/etc/passwd", ""};
  for (const Rule& rule : plain.rules) {
    const std::string base = rule.scope + (rule.path.starts_with('/') ? "" : "/") + rule.path;
    for (const char* tail : {"", "x", "/x", "/x/y", ".bak", "~"}) paths.push_back(base + tail);
  }
  for (const std::string& path : paths)
    for (const Access access : {Access::read, Access::write}) {
      const FileAction action = asked(access, path);
      EXPECT_EQ(decide(plain, action).rule, decide(indexed, action).rule) << path;
    }
}

TEST(PolicyIndex, ManyCandidatesFallBackToAllRules) {
  Policy policy;
  for (std::uint32_t i = 0; i < 500; ++i)
    policy.rules.push_back(make(Effect::allow_write, Shape::subtree, "/a", Origin::live, "", i));
  policy.rules.push_back(make(Effect::deny_write, Shape::subtree, "/a/b", Origin::live, "", 1000));
  compile(policy);
  EXPECT_TRUE(writes(policy, "/a/c"));
  EXPECT_FALSE(writes(policy, "/a/b/c"));
}

TEST(PolicyIndex, ACopyLeavesItBehindAMoveTakesIt) {
  Policy policy = session();
  compile(policy);
  Policy copy = policy;
  EXPECT_EQ(copy.index.get(), nullptr);
  copy.rules.insert(copy.rules.begin(), make(Effect::never_write, Shape::subtree, "/home/u/p/src"));
  EXPECT_FALSE(writes(copy, "/home/u/p/src/a.c"));
  const PolicyIndex* index = policy.index.get();
  const Policy moved = std::move(policy);
  EXPECT_EQ(moved.index.get(), index);
  Policy assigned = session();
  compile(assigned);
  assigned = copy;
  EXPECT_EQ(assigned.index.get(), nullptr);
}

} // namespace
} // namespace nd7

namespace nd7 {
namespace {

TEST(Policy, AHomeAsProjectOpensNoPlaceOfCredentials) {
  Policy policy;
  policy.home = policy.project = "/home/u";
  Rule project;
  project.effect = Effect::allow_write;
  project.path = "/home/u";
  Rule keys;
  keys.effect = Effect::deny_read;
  keys.path = "/home/u/.ssh";
  Rule open;
  open.effect = Effect::allow_read;
  open.shape = Shape::exact;
  open.path = "/home/u/.ssh/authorized_keys";
  policy.rules = {project, keys, open};
  FileAction action;
  action.access = Access::write;
  action.path = "/home/u/file";
  EXPECT_TRUE(decide(policy, action).allowed());
  for (const char* path : {"/home/u/.ssh/id_x", "/home/u/.ssh/authorized_keys", "/home/u/.ssh"}) {
    action.path = path;
    EXPECT_FALSE(decide(policy, action).allowed()) << path;
  }
  // Named by the person, it is open.
  Rule grant;
  grant.effect = Effect::allow_write;
  grant.path = "/home/u/.ssh/config";
  grant.origin = Origin::live;
  policy.rules.push_back(grant);
  action.path = "/home/u/.ssh/config";
  EXPECT_TRUE(decide(policy, action).allowed());
}

} // namespace
} // namespace nd7
