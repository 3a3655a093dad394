#include "core/policy_text.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace nd7 {
namespace {

constexpr const char* example = R"([files]
write = ["~/data"]                  # besides the built-in rules
deny_write = ["**/migrations/"]
deny_read = ["**/.env", "**/.env.*"]
read = ["~/.config/gh/hosts.yml"]   # opens a row of the credential table
[network]
hosts = ["*.npmjs.example", "github.com"]   # absent: any host on 443
dns = "hosts"                       # questions only for allowed hosts; default "any"
ports = [5432]                      # services on this machine
listen = ["0.0.0.0:3000"]
[env]
pass = ["GITHUB_TOKEN"]
[log]
keep_content = "64KiB"
reads = "observed"
[project."/home/me/api"]            # the same tables, for one project
files.write = ["~/shared-fixtures"]
[profile.review]                    # nd7 run --profile review
files.deny_write = ["**"]
)";

std::vector<std::string> texts(const std::vector<PolicyEntry>& entries) {
  std::vector<std::string> out;
  for (const PolicyEntry& entry : entries) out.push_back(entry.text);
  return out;
}
using Texts = std::vector<std::string>;

TEST(PolicyText, ReadsEveryKeyOfTheManual) {
  Result<PolicyFile> file = parse_policy(example, "policy.toml");
  ASSERT_TRUE(file.has_value()) << file.error().text;
  const PolicyTables& t = file->general;
  EXPECT_EQ(texts(t.write), Texts{"~/data"});
  EXPECT_EQ(texts(t.deny_read), (Texts{"**/.env", "**/.env.*"}));
  EXPECT_EQ(texts(*t.hosts), (Texts{"*.npmjs.example", "github.com"}));
  EXPECT_EQ(t.dns_hosts_only, true);
  EXPECT_EQ(texts(t.ports), Texts{"5432"});
  EXPECT_EQ(texts(t.pass), Texts{"GITHUB_TOKEN"});
  EXPECT_EQ(t.keep_content_bytes, 65536u);
  EXPECT_EQ(t.reads_exact, false);
  ASSERT_EQ(file->projects.size(), 1u);
  EXPECT_EQ(file->projects[0].first, "/home/me/api");
  ASSERT_EQ(file->profiles.size(), 1u);
  EXPECT_EQ(texts(file->profiles[0].second.deny_write), Texts{"**"});
  EXPECT_EQ(t.deny_read[1].line, 4u);
  EXPECT_EQ(t.deny_read[1].column, 25u);
}

struct Mistake {
  const char* text;
  const char* error; // all of it
};

TEST(PolicyText, MistakesAreNamedWithLineAndColumn) {
  const Mistake mistakes[] = {
      {"[fiels]\n", "p:1:2: unknown key 'fiels', did you mean 'files'?"},
      {"[files]\nwirte = []", "p:2:1: unknown key 'files.wirte', did you mean 'files.write'?"},
      {"[files]\nexecute = []", "p:2:1: unknown key 'files.execute'"},
      {"[network]\n  port = [1]",
       "p:2:3: unknown key 'network.port', did you mean 'network.ports'?"},
      {"files = 3", "p:1:9: 'files' must be a table"},
      {"[files]\nwrite = \"x\"", "p:2:9: 'files.write' must be a list of strings"},
      {"[files]\nwrite = [\"a\", 3]", "p:2:15: 'files.write' must hold strings only"},
      {"[files]\nwrite = [\"\"]", "p:2:10: an empty path"},
      {"[files]\nwrite = [\"a/../b\"]",
       "p:2:10: 'a/../b': write the path without '.', '..' and double slashes"},
      {"[files]\nread = [\"~root/x\"]", "p:2:9: '~root/x': only ~/ is known, no other user's home"},
      {"[files]\ndeny_read = [\n  \"ok\",\n  \"a[\",\n]", "p:4:3: pattern 'a[': '[' is not closed"},
      {"[files]\ndeny_read = [\"!x\"]", "p:2:14: pattern '!x': '!' is not supported"},
      {"[network]\nhosts = [\"a b\"]",
       "p:2:10: 'a b' is no host: letters, digits, - and _ only; write other names in their xn-- "
       "form"},
      {"[network]\nhosts = [\"*\"]", "p:2:10: '*' is no host: a star stands only at the front, *."},
      {"[network]\nhosts = [\"10.1\"]",
       "p:2:10: '10.1' is no host: it looks like an address and is none"},
      {"[network]\nhosts = [\"x:0\"]", "p:2:10: 'x:0' is no host: write NAME or NAME:PORT"},
      {"[network]\ndns = \"hots\"", "p:2:7: 'network.dns' must be \"any\" or \"hosts\""},
      {"[network]\nports = [0]", "p:2:10: 0 is no port: 1 to 65535"},
      {"[network]\nports = [\"1\"]", "p:2:10: 'network.ports' must hold numbers only"},
      {"[network]\nlisten = [\"3000\"]",
       "p:2:11: '3000' is no address to listen on, such as 0.0.0.0:3000 or [::]:3000"},
      {"[env]\npass = [\"A-B\"]", "p:2:9: 'A-B' is no name of a variable"},
      {"[log]\nkeep_content = \"lots\"",
       "p:2:16: 'log.keep_content' must be a size up to 1GiB, such as \"64KiB\""},
      {"[log]\nreads = true", "p:2:9: 'log.reads' must be \"observed\" or \"exact\""},
      {"[profile.x]\nfile.write = []",
       "p:2:1: unknown key 'profile.x.file', did you mean 'profile.x.files'?"},
      {"[project.x]\n", "p:1:10: 'project.x': the path of a project must begin with / or ~/"},
      {"[profile.x.profile.y]\n", "p:1:12: unknown key 'profile.x.profile'"},
  };
  for (const Mistake& mistake : mistakes) {
    Result<PolicyFile> file = parse_policy(mistake.text, "p");
    ASSERT_FALSE(file.has_value()) << mistake.text;
    EXPECT_EQ(file.error().text, mistake.error) << mistake.text;
  }
}

TEST(PolicyText, SyntaxErrorsHaveAPositionToo) {
  for (const char* text : {"[files", "a = ", "[files]\nwrite = [\"a\"\n\nx", "[files]\n[files]\n",
                           "[files]\nread=[]\nread=[]", "x = \"\\u00\"", "\xff"}) {
    Result<PolicyFile> file = parse_policy(text, "p.toml");
    ASSERT_FALSE(file.has_value()) << text;
    EXPECT_TRUE(file.error().text.starts_with("p.toml:")) << file.error().text;
    EXPECT_GE(std::ranges::count(file.error().text, ':'), 3) << file.error().text;
  }
}

TEST(PolicyText, AnEmptyFileSaysNothing) {
  Result<PolicyFile> file = parse_policy("", "p");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->general, PolicyTables{});
  EXPECT_EQ(tables_text(file->general), "");
}

TEST(ProjectFile, MayOnlyNarrowUntilItIsAccepted) {
  for (const char* text :
       {"files.write = [\"~/x\"]", "files.read = [\"~/.netrc\"]", "network.ports = [1]",
        "network.listen = [\"0.0.0.0:1\"]", "network.dns = \"any\"", "env.pass = [\"X\"]",
        "log.keep_content = 1", "log.reads = \"observed\""}) {
    Result<PolicyFile> file = parse_policy(text, ".nd7.toml", PolicySource::project_file);
    ASSERT_FALSE(file.has_value()) << text;
    EXPECT_NE(file.error().text.find("would widen the rules"), std::string::npos);
    EXPECT_EQ(file.error().hint, "read it, then accept it: nd7 trust .nd7.toml");
    EXPECT_TRUE(parse_policy(text, ".nd7.toml", PolicySource::trusted_project_file)) << text;
  }
  for (const char* text :
       {"files.deny_write = [\"x\"]", "files.deny_read = [\"x\"]", "network.hosts = []",
        "network.dns = \"hosts\"", "log.reads = \"exact\""})
    EXPECT_TRUE(parse_policy(text, ".nd7.toml", PolicySource::project_file)) << text;
  for (PolicySource source : {PolicySource::project_file, PolicySource::trusted_project_file})
    for (const char* text : {"[profile.x]", "[project.\"/x\"]"})
      EXPECT_FALSE(parse_policy(text, ".nd7.toml", source)) << text;
}

struct Applied {
  Policy policy;
  PolicySettings settings;
};

Applied applied(std::string_view text, std::string_view project_text = {},
                PolicySource source = PolicySource::project_file, std::string profile = {}) {
  Applied out;
  PolicyContext context{"/home/me", "/home/me/api", std::move(profile)};
  out.policy.home = context.home;
  out.policy.project = context.project;
  Rule project;
  project.effect = Effect::allow_write;
  project.path = context.project;
  out.policy.rules.push_back(project);
  Result<PolicyFile> file = parse_policy(text, "policy.toml");
  EXPECT_TRUE(file.has_value()) << (file ? "" : file.error().text);
  EXPECT_TRUE(apply_policy(*file, context, out.policy, out.settings));
  Result<PolicyFile> narrow = parse_policy(project_text, ".nd7.toml", source);
  EXPECT_TRUE(narrow.has_value()) << (narrow ? "" : narrow.error().text);
  EXPECT_TRUE(apply_policy(*narrow, context, out.policy, out.settings));
  return out;
}

bool allows(const Policy& policy, Access access, std::string path, bool directory = false) {
  FileAction action;
  action.access = access;
  action.path = std::move(path);
  action.is_directory = directory;
  return decide(policy, action).allowed();
}
bool writes(const Policy& policy, std::string path) {
  return allows(policy, Access::write, std::move(path));
}
bool reads(const Policy& policy, std::string path) {
  return allows(policy, Access::read, std::move(path));
}

TEST(ApplyPolicy, TheManualsExampleMeansWhatItSays) {
  Applied a = applied(example);
  EXPECT_TRUE(writes(a.policy, "/home/me/data/x"));
  EXPECT_TRUE(writes(a.policy, "/home/me/shared-fixtures/x"));
  EXPECT_FALSE(writes(a.policy, "/home/me/datax"));
  EXPECT_TRUE(writes(a.policy, "/home/me/api/db/x.sql"));
  EXPECT_FALSE(writes(a.policy, "/home/me/api/db/migrations/1.sql"));
  EXPECT_FALSE(writes(a.policy, "/home/me/data/migrations/1.sql"));
  EXPECT_FALSE(reads(a.policy, "/home/me/api/deep/.env.local"));
  EXPECT_TRUE(reads(a.policy, "/home/me/api/deep/.envrc"));
  EXPECT_TRUE(a.policy.only_hosts);
  EXPECT_EQ(a.policy.hosts.size(), 2u);
  ASSERT_EQ(a.policy.ports.size(), 1u);
  EXPECT_EQ(a.policy.ports[0].port, 5432);
  ASSERT_EQ(a.policy.listens.size(), 1u);
  EXPECT_EQ(a.policy.listens[0].address.port, 3000);
  EXPECT_TRUE(a.settings.dns_hosts_only);
  EXPECT_EQ(a.settings.pass, Texts{"GITHUB_TOKEN"});
}

TEST(ApplyPolicy, AProfileAddsItsTables) {
  Applied a = applied(example, "", PolicySource::project_file, "review");
  EXPECT_FALSE(writes(a.policy, "/home/me/api/x"));
  EXPECT_FALSE(writes(a.policy, "/home/me/data/x"));
  Result<PolicyFile> file = parse_policy(example, "policy.toml");
  Result<PolicyTables> none = effective_tables(*file, {"/home/me", "/home/me/api", "reviw"});
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().text, "policy.toml: no profile 'reviw'");
  EXPECT_EQ(none.error().hint, "did you mean --profile review?");
}

TEST(ApplyPolicy, PathsAndPatternsAreTakenFromTheirBases) {
  Applied a = applied("files.write = [\"~/w/*/out\", \"/srv/x/\", \"~/a b\"]\n"
                      "files.deny_read = [\"~/s/*.key\", \"/etc/secret\", \"local/\", \"*.pem\"]");
  EXPECT_TRUE(writes(a.policy, "/home/me/w/1/out/file"));
  EXPECT_FALSE(writes(a.policy, "/home/me/w/1/in"));
  EXPECT_FALSE(writes(a.policy, "/home/me/w/1/2/out"));
  EXPECT_TRUE(writes(a.policy, "/srv/x/y"));
  EXPECT_TRUE(writes(a.policy, "/home/me/a b/c"));
  EXPECT_FALSE(reads(a.policy, "/home/me/s/a.key"));
  EXPECT_TRUE(reads(a.policy, "/home/me/s/t/a.key"));
  EXPECT_FALSE(reads(a.policy, "/etc/secret/x"));
  EXPECT_FALSE(reads(a.policy, "/home/me/api/src/local/x"));
  EXPECT_FALSE(reads(a.policy, "/home/me/api/src/a.pem"));
  EXPECT_TRUE(reads(a.policy, "/etc/ssl/a.pem"));
}

TEST(ApplyPolicy, InAProjectsFileALeadingSlashIsTheProject) {
  Applied a = applied("", "files.deny_write = [\"/gen\", \"/src/*.lock\"]");
  EXPECT_FALSE(writes(a.policy, "/home/me/api/gen/x"));
  EXPECT_FALSE(writes(a.policy, "/home/me/api/src/a.lock"));
  EXPECT_TRUE(writes(a.policy, "/home/me/api/src/gen/x"));
}

std::vector<std::string> names(const Policy& policy) {
  std::vector<std::string> out;
  for (const HostGrant& host : policy.hosts) out.push_back(host.name);
  std::ranges::sort(out);
  return out;
}

TEST(ApplyPolicy, AProjectsHostsAreIntersectedWithThePersons) {
  const char* mine = "network.hosts = [\"*.example.com\", \"github.com\", \"a.test\"]";
  EXPECT_EQ(
      names(applied(mine, "network.hosts = [\"api.example.com\", \"github.com\", \"evil.test\"]")
                .policy),
      (Texts{"api.example.com", "github.com"}));
  EXPECT_EQ(names(applied(mine, "network.hosts = [\"*.test\"]").policy), Texts{"a.test"});
  EXPECT_EQ(names(applied(mine, "network.hosts = [\"example.com\"]").policy), Texts{});
  EXPECT_EQ(names(applied(mine, "").policy).size(), 3u);
  Applied none = applied("", "network.hosts = []");
  EXPECT_TRUE(none.policy.only_hosts);
  EXPECT_TRUE(none.policy.hosts.empty());
  // Another port would be a grant, not a restriction.
  EXPECT_EQ(names(applied("", "network.hosts = [\"a.test:22\", \"b.test\"]").policy),
            Texts{"b.test"});
}

TEST(ApplyPolicy, AnAcceptedFileMayLoosenSettingsAndAnyMayTightenThem) {
  Applied a = applied("network.dns = \"hosts\"\nlog.reads = \"exact\"",
                      "network.dns = \"any\"\nlog.reads = \"observed\"",
                      PolicySource::trusted_project_file);
  EXPECT_FALSE(a.settings.dns_hosts_only);
  EXPECT_FALSE(a.settings.reads_exact);
  a = applied("", "network.dns = \"hosts\"\nlog.reads = \"exact\"");
  EXPECT_TRUE(a.settings.dns_hosts_only);
  EXPECT_TRUE(a.settings.reads_exact);
}

rc::Gen<std::string> name_gen() {
  return rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::element('a', 'b', '.', '*')));
}
rc::Gen<std::string> path_gen() {
  return rc::gen::map(
      rc::gen::tuple(rc::gen::element<std::string>("~/", "/home/me/", "/", "", "**/", "api/"),
                     name_gen(), rc::gen::element<std::string>("", "/", "/a", "/*")),
      [](const std::tuple<std::string, std::string, std::string>& parts) {
        return std::get<0>(parts) + std::get<1>(parts) + std::get<2>(parts);
      });
}
std::vector<PolicyEntry> good_entries(const std::vector<std::string>& all) {
  std::vector<PolicyEntry> out;
  for (const std::string& text : all)
    if (parse_policy("files.deny_read = ['" + text + "']", "p")) out.push_back({text});
  return out;
}

RC_GTEST_PROP(ApplyPolicy, WhatAnUnacceptedProjectFileSaysOnlyTakesAway, ()) {
  PolicyTables mine, theirs;
  auto list = [] {
    return good_entries(*rc::gen::container<std::vector<std::string>>(path_gen()));
  };
  mine.write = list();
  mine.read = list();
  mine.deny_write = list();
  theirs.deny_write = list();
  theirs.deny_read = list();
  std::string before = tables_text(mine);
  Applied without = applied(before), with = applied(before, tables_text(theirs));
  for (int i = 0; i < 30; ++i) {
    std::string path = "/" + *rc::gen::element<std::string>("home/me/", "home/me/api/", "") +
                       *rc::gen::element<std::string>("a", "b", "ab", "a/b", "a/a/b", ".", "x");
    for (Access access : {Access::read, Access::write})
      if (allows(with.policy, access, path)) RC_ASSERT(allows(without.policy, access, path));
  }
}

RC_GTEST_PROP(PolicyText, PrintedTablesParseToTheSame, ()) {
  PolicyTables tables;
  auto list = [] {
    return good_entries(*rc::gen::container<std::vector<std::string>>(path_gen()));
  };
  tables.write = list();
  tables.deny_write = list();
  tables.read = list();
  tables.deny_read = list();
  if (*rc::gen::arbitrary<bool>()) tables.hosts = std::vector<PolicyEntry>{{"a.test"}, {"[::1]:5"}};
  if (*rc::gen::arbitrary<bool>()) tables.hosts.emplace();
  if (*rc::gen::arbitrary<bool>()) tables.dns_hosts_only = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) tables.reads_exact = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) tables.keep_content_bytes = *rc::gen::inRange(0, 1 << 30);
  tables.ports = {{std::to_string(*rc::gen::inRange(1, 65536))}};
  tables.pass = {{"X_1"}};
  Result<PolicyFile> file = parse_policy(tables_text(tables), "p");
  RC_ASSERT(file.has_value());
  RC_ASSERT(file->general == tables);
}

TEST(ParseSize, UnitsAndBounds) {
  EXPECT_EQ(parse_size("64KiB"), 65536u);
  EXPECT_EQ(parse_size("1 MiB"), 1048576u);
  EXPECT_EQ(parse_size("10kB"), 10000u);
  EXPECT_EQ(parse_size("0"), 0u);
  EXPECT_EQ(parse_size("1GiB"), std::uint64_t{1} << 30);
  for (const char* bad :
       {"", "KiB", "-1", "1.5KiB", "2GiB", "64 kib", "99999999999999999999", "1KiBx"})
    EXPECT_EQ(parse_size(bad), std::nullopt) << bad;
}

TEST(NearestWord, AtMostTwoSlips) {
  EXPECT_EQ(nearest_word("wirte", {"write", "read"}), "write");
  EXPECT_EQ(nearest_word("deny_reads", {"deny_write", "deny_read"}), "deny_read");
  EXPECT_EQ(nearest_word("xyzzy", {"write", "read"}), "");
  EXPECT_EQ(nearest_word("zz", {"dns"}), "");
}

} // namespace
} // namespace nd7
