// What a session may and may not do to a configuration of git.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/git_config.h"
#include "core/git_config_rules.h"

namespace nd7 {
namespace {

std::string refused(std::string_view old_text, std::string_view new_text,
                    std::string_view path = {}) {
  const Judgement judgement = judge_git_config(old_text, new_text, path);
  EXPECT_EQ(judgement.ok, judgement.rule.empty());
  return judgement.rule;
}

TEST(GitConfig, RefusesByName) {
  const std::string base = "[core]\n\tbare = false\n";
  const auto rule = [&](const std::string& more) { return refused(base, base + more); };
  EXPECT_EQ(rule("\thooksPath = h\n"), "git config core.hooksPath runs programs later outside");
  EXPECT_EQ(rule("[CORE]FSMONITOR=x"), "git config CORE.FSMONITOR runs programs later outside");
  EXPECT_EQ(rule("\tsshCommand\n"), "git config core.sshCommand runs programs later outside");
  EXPECT_EQ(rule("[alias]st=!sh"), "git config alias.st runs programs later outside");
  EXPECT_EQ(rule("[filter \"x\"]clean=x"), "git config filter.x.clean runs programs later outside");
  EXPECT_EQ(rule("[include]path=x"), "git config include.path makes git read another file");
  EXPECT_EQ(rule("[some]thing=1"), "git config some.thing is not known to be harmless");
  EXPECT_EQ(rule("[remote \"o\"]url=ext::sh -c x"),
            "git config remote.o.url is no plain address: it may run programs later outside");
  EXPECT_EQ(rule("[branch \"m\"]remote=ext::sh -c x"),
            "git config branch.m.remote is no plain address: it may run programs later outside");
  EXPECT_EQ(rule("[submodule \"s\"]update=!x"),
            "git config submodule.s.update runs programs later outside");
  EXPECT_EQ(rule("\tbare = x\n"), "git config core.bare has a value that is not plain");
  EXPECT_EQ(rule("[a \"\x1b]\"]b=1"),
            "git config cannot be judged: it would hold control characters");
  EXPECT_EQ(rule("[a \"\xC3\xA9\"]b=1"), "git config a.\\xc3\\xa9.b is not known to be harmless");
}

TEST(GitConfig, EveryDangerousKeyIsRefused) {
  // From git-config(1): each can start a program, read another file or lift a protection.
  for (const std::string_view line : {"[core]hooksPath=x",
                                      "[core]fsmonitor=x",
                                      "[core]fsmonitor=true",
                                      "[core]fsmonitor",
                                      "[core]sshCommand=x",
                                      "[core]editor=x",
                                      "[core]pager=x",
                                      "[core]askPass=x",
                                      "[core]attributesFile=x",
                                      "[core]gitProxy=x",
                                      "[core]worktree=/home/u",
                                      "[core]worktree=..",
                                      "[core]alternateRefsCommand=x",
                                      "[core]excludesFile=/x",
                                      "[core]sharedRepository=0777",
                                      "[core]protectNTFS=false",
                                      "[core]protectHFS=false",
                                      "[alias]a=!x",
                                      "[alias \"b\"]command=!x",
                                      "[filter \"f\"]smudge=x",
                                      "[filter \"f\"]process=x",
                                      "[diff]external=x",
                                      "[diff]tool=x",
                                      "[diff \"d\"]command=x",
                                      "[diff \"d\"]textconv=x",
                                      "[difftool \"t\"]cmd=x",
                                      "[difftool]prompt=false",
                                      "[mergetool \"t\"]cmd=x",
                                      "[merge]tool=x",
                                      "[merge \"m\"]driver=x",
                                      "[credential]helper=!x",
                                      "[credential \"https://a\"]helper=!x",
                                      "[gpg]program=x",
                                      "[gpg \"ssh\"]program=x",
                                      "[gpg \"ssh\"]defaultKeyCommand=x",
                                      "[include]path=x",
                                      "[includeIf \"gitdir:/\"]path=x",
                                      "[url \"ext::x\"]insteadOf=https://",
                                      "[url \"a\"]pushInsteadOf=b",
                                      "[submodule \"s\"]update=!x",
                                      "[submodule \"../x\"]url=https://a/b",
                                      "[submodule \"s\"]path=../x",
                                      "[submodule \"s\"]path=-x",
                                      "[submodule \"s\"]url=-u",
                                      "[submodule \"s\"]gitdir=x",
                                      "[protocol]allow=always",
                                      "[protocol \"ext\"]allow=always",
                                      "[remote \"o\"]uploadpack=x",
                                      "[remote \"o\"]receivepack=x",
                                      "[remote \"o\"]vcs=x",
                                      "[remote \"o\"]proxy=x",
                                      "[remote \"o\"]url=ext::x",
                                      "[remote \"o\"]pushurl=a::b",
                                      "[remote \"o\"]url=foo://x",
                                      "[remote \"-o\"]url=https://a/b",
                                      "[remote \"../o\"]fetch=a",
                                      "[remote \"o\"]url=ssh://-oProxyCommand=x/y",
                                      "[remote]pushDefault=ext::x",
                                      "[branch \"b\"]remote=ext::x",
                                      "[branch \"b\"]pushRemote=foo::x",
                                      "[branch \"b\"]mergeOptions=-s x",
                                      "[pull]twohead=x",
                                      "[pull]octopus=x",
                                      "[extensions]partialClone=ext::x",
                                      "[extensions]refStorage=files:///x",
                                      "[extensions]unknown=1",
                                      "[uploadpack]packObjectsHook=x",
                                      "[receive]denyCurrentBranch=x",
                                      "[sequence]editor=x",
                                      "[man \"m\"]cmd=x",
                                      "[man \"m\"]path=x",
                                      "[browser \"b\"]cmd=x",
                                      "[web]browser=x",
                                      "[instaweb]httpd=x",
                                      "[interactive]diffFilter=x",
                                      "[pager]log=x",
                                      "[pager]log",
                                      "[http]proxy=x",
                                      "[http]sslVerify=false",
                                      "[http]sslCAInfo=x",
                                      "[http]sslCert=x",
                                      "[http]cookieFile=x",
                                      "[http]extraHeader=x",
                                      "[http \"https://a\"]proxy=x",
                                      "[trailer \"t\"]cmd=x",
                                      "[trailer \"t\"]command=x",
                                      "[sendemail]smtpServer=/x",
                                      "[sendemail]toCmd=x",
                                      "[guitool \"g\"]cmd=x",
                                      "[hook \"h\"]command=x",
                                      "[imap]tunnel=x",
                                      "[gc]recentObjectsHook=x",
                                      "[gc]repackFilterTo=x",
                                      "[rebase]instructionFormat=%nexec x",
                                      "[init]templateDir=x",
                                      "[safe]directory=*",
                                      "[transfer]fsckObjects=false",
                                      "[fetch]fsckObjects=false",
                                      "[fetch]bundleURI=https://a",
                                      "[commit]gpgSign=true",
                                      "[commit]template=/x",
                                      "[user]signingKey=x",
                                      "[tar \"x\"]command=x",
                                      "[lfs]url=https://a",
                                      "[lfs \"customtransfer.x\"]path=x",
                                      "[ssh]variant=x",
                                      "[help]autoCorrect=immediate",
                                      "[format]pretty=x",
                                      "[trace2]eventTarget=/x",
                                      "[core \"\"]bare=true",
                                      "[core.x]bare=true",
                                      "[.]x=1",
                                      "x=1"}) {
    EXPECT_NE(refused("", line), "") << line;
    EXPECT_NE(refused("[core]\n\tbare = false\n",
                      std::string("[core]\n\tbare = false\n") + std::string(line)),
              "")
        << line;
    // What stood there may stay.
    const std::string kept = std::string(line) + "\n";
    EXPECT_EQ(refused(kept, kept + "[user]\n\tname = x\n"), "") << line;
  }
}

TEST(GitConfig, WhatStoodThereKeepsItsValuesAndPlaces) {
  const std::string two = "[alias]\n\ta = one\n\ta = two\n[core]\n\tpager = less\n";
  EXPECT_EQ(refused(two, two), "");
  EXPECT_EQ(refused(two, "[core]\n\tpager = less\n"), "");                     // removed whole
  EXPECT_NE(refused(two, "[alias]\n\ta = one\n[core]\n\tpager = less\n"), ""); // one would win now
  EXPECT_NE(refused(two, "[alias]\n\ta = two\n\ta = one\n[core]\n\tpager = less\n"), "");
  EXPECT_NE(refused(two, "[core]\n\tpager = less\n[alias]\n\ta = one\n\ta = two\n"), "");
  EXPECT_NE(refused(two, two + "[alias]\n\ta = one\n"), "");
  EXPECT_NE(refused("[alias]\n\ta = x\ty\n", "[alias]\n\ta = \"x\ty\"\n"), ""); // old gits differ
}

TEST(GitConfig, ProtectionsStay) {
  for (const std::string_view line :
       {"[core]hooksPath=/dev/null", "[safe]bareRepository=explicit", "[protocol]allow=never",
        "[transfer]fsckObjects=true", "[fetch]fsckObjects", "[core]protectNTFS=true",
        "[merge]verifySignatures=true", "[commit]gpgSign=true", "[credential]helper=",
        "[url \"nowhere\"]pushInsteadOf=https://a", "[receive]denyNonFastForwards=true",
        "[include]path=team", "[user]useConfigOnly=true", "[http]sslVerify=true"}) {
    const std::string old = std::string(line) + "\n";
    EXPECT_EQ(refused(old, old), "") << line;
    EXPECT_NE(refused(old, ""), "") << line;
    EXPECT_NE(refused(old, old + old), "") << line;
  }
  EXPECT_EQ(refused("[commit]gpgSign=true\n", "[commit]gpgSign=true\n[commit]gpgSign=false\n"),
            "git config commit.gpgSign is a protection and must stay as it is");
  EXPECT_EQ(refused("[commit]gpgSign=false\n", ""), "");
}

TEST(GitConfig, RefusesWhatDoesNotParse) {
  EXPECT_EQ(refused("", "[core\n"), "git config cannot be judged: line 1: not git's syntax");
  EXPECT_NE(refused("[core\n", ""), ""); // a person repairs it
  EXPECT_NE(refused("", std::string_view("[a]\n\0", 5)), "");
  EXPECT_NE(refused("", "[user]\n\tname = a\rb\n"), "");
  EXPECT_EQ(refused("[user]\n\tname = a\rb\n", "[user]\n\tname = a\rb\n[gc]\n\tauto = 0\n")
                .find("control characters"),
            std::string::npos);
  EXPECT_EQ(refused("", "[core]\r\n\tbare = false\r\n"), "");
}

TEST(GitConfig, WorktreeOfASubmodule) {
  const auto rule = [](std::string_view path, const std::string& value) {
    return refused("", "[core]\n\tworktree = " + value + "\n", path);
  };
  EXPECT_EQ(rule("/p/.git/modules/a/config", "../../../a"), "");
  EXPECT_EQ(rule("/p/.git/modules/a/b/config", "../../../../a/b"), "");
  EXPECT_EQ(rule("/p/.git/modules/a/modules/b/config", "../../../../../a/b"), "");
  for (const std::string_view bad : {"../../..", "../../../..", "../../../../x", "/p/a", "..", ".",
                                     "../../../.git", "../../../a/../.GIT/x", "../../../../p2/a"})
    EXPECT_NE(rule("/p/.git/modules/a/config", std::string(bad)), "") << bad;
  EXPECT_NE(rule("/p/.git/config", "../a"), "");
  EXPECT_NE(rule("", "../../../a"), "");
}

TEST(GitConfig, Addresses) {
  for (const std::string_view url :
       {"https://example.com/a.git", "https://user:pw@example.com:8443/a",
        "ssh://git@example.com/a", "ssh://git@[::1]:22/a", "git@example.com:a/b.git", "host:path",
        "[::1]:path", "[host:22]:path", "/srv/a b.git", "../a", "./a", ".", "origin", "a/b:c",
        "file:///srv/a", "git://example.com/a", "~/a", "http://example.com/a", "me/fork"})
    EXPECT_TRUE(is_plain_git_url(url)) << url;
  for (const std::string_view url : {"",
                                     "-x",
                                     "--upload-pack=x",
                                     "ext::sh -c x",
                                     "foo::bar",
                                     "::x",
                                     "https::https://a",
                                     "fd::7",
                                     "foo://a",
                                     "HTTPS://a/b",
                                     "ssh://-oProxyCommand=x/y",
                                     "ssh://user@-x/y",
                                     "ssh://-u@h/y",
                                     "-h:path",
                                     "u@-h:path",
                                     "host:-path",
                                     ":path",
                                     "host:",
                                     "ssh://%2doProxy/x",
                                     "ssh:///x",
                                     "https://",
                                     "https://a%0ahost=b/x",
                                     "https://a/\nb",
                                     "[-x]:p",
                                     "[]:p",
                                     "[a]:-p",
                                     "file://h/x",
                                     "a b:c",
                                     "$(x):y",
                                     "testgit::/x",
                                     "a+b-c.d::x",
                                     "ftp://a/b"})
    EXPECT_FALSE(is_plain_git_url(url)) << url;
}

// Whatever a session does in how many steps: a file that ends with a dangerous key that was not
// there at first never came about by changes that all passed.
RC_GTEST_PROP(GitConfig, NoSequenceOfEditsEndsInADangerousKey, ()) {
  const std::vector<std::string> lines = {"[core]\n",
                                          "[remote \"o\"]\n",
                                          "[alias]\n",
                                          "[branch \"m\"]\n",
                                          "[submodule \"s\"]\n",
                                          "[include]\n",
                                          "[filter \"f\"]\n",
                                          "\tbare = false\n",
                                          "\thooksPath = x\n",
                                          "\tpager = less\n",
                                          "\turl = https://a/b\n",
                                          "\turl = ext::x\n",
                                          "\tremote = o\n",
                                          "\tremote = x::y\n",
                                          "\tfetch = +a:b\n",
                                          "\tupdate = !x\n",
                                          "\tupdate = none\n",
                                          "\tpath = x\n",
                                          "\tclean = x\n",
                                          "\tst = !x\n",
                                          "# c\n",
                                          "\tname = \"a \\\n",
                                          "b\"\n",
                                          "[core] pager = \"x\n"};
  const auto file = [&lines] {
    std::string text;
    for (int i = *rc::gen::inRange(0, 7); i > 0; --i) text += *rc::gen::elementOf(lines);
    return text;
  };
  // Independent of the judge's own tables: what is dangerous among the lines above.
  const auto dangerous = [](std::string_view text) {
    std::vector<std::string> found;
    for (const GitConfigEntry& entry :
         parse_git_config(text).value_or(std::vector<GitConfigEntry>{})) {
      const std::string value = entry.value.value_or("");
      const bool bad = entry.key == "core.hookspath" || entry.key == "core.pager" ||
                       entry.key.starts_with("alias.") || entry.key.starts_with("include.") ||
                       entry.key == "filter.f.clean" || value.starts_with("ext::") ||
                       value.starts_with("x::") || value.starts_with("!");
      if (bad) found.push_back(entry.key + "=" + value);
    }
    return found;
  };
  const std::string first = file();
  const auto had = dangerous(first);
  std::string now = first;
  for (int step = *rc::gen::inRange(1, 8); step > 0; --step) {
    std::string next = *rc::gen::element(0, 1) == 0 ? now + file() : file();
    if (!judge_git_config(now, next).ok) continue;
    RC_ASSERT(parse_git_config(next).has_value());
    now = std::move(next);
  }
  for (const std::string& entry : dangerous(now))
    RC_ASSERT(std::find(had.begin(), had.end(), entry) != had.end());
}

// The answer does not depend on how a key is spelled.
RC_GTEST_PROP(GitConfig, SpellingOpensNothing, ()) {
  const auto& [section, name] = *rc::gen::elementOf(
      std::vector<std::pair<std::string, std::string>>{{"core", "hookspath"},
                                                       {"core", "fsmonitor"},
                                                       {"alias", "x"},
                                                       {"diff", "external"},
                                                       {"sequence", "editor"},
                                                       {"include", "path"},
                                                       {"credential", "helper"}});
  const auto cased = [](std::string text) {
    for (char& c : text)
      if (c >= 'a' && c <= 'z' && *rc::gen::arbitrary<bool>()) c = static_cast<char>(c - 'a' + 'A');
    return text;
  };
  const std::string gap = *rc::gen::elementOf(
      std::vector<std::string>{"\n", " ", "\t", "\r\n", "\n\n", "# c\n", "; c \\\n", "\n\t"});
  const std::string assign = *rc::gen::elementOf(std::vector<std::string>{
      "=x", " = x", "\t=\tx", "=\"x\"", "= \\\nx", " = \"\"x", "=x # y", "=x\r\n"});
  const std::string before = *rc::gen::elementOf(std::vector<std::string>{
      "", "\xEF\xBB\xBF", "[user]name=a\n", "#[a]\n", "[user] name = \"a\\\n b\"\n", "\r\n"});
  const std::string text = before + "[" + cased(section) + "]" + gap + cased(name) + assign;
  RC_ASSERT(parse_git_config(text).has_value());
  RC_ASSERT(!judge_git_config("", text).ok);
}

} // namespace
} // namespace nd7
