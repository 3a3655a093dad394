// The parser against git itself, and real configurations that must pass.
#include "core/git_config.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/judge.h"

namespace nd7 {
namespace {

namespace fs = std::filesystem;

// Git in a directory of its own, with nobody's configuration.
class Git {
public:
  Git() {
    std::string name = fs::temp_directory_path() / "nd7-git-XXXXXX";
    root_ = mkdtemp(name.data());
    found_ = std::system("git --version >/dev/null 2>&1") == 0;
  }
  ~Git() { fs::remove_all(root_); }
  Git(const Git&) = delete;
  Git& operator=(const Git&) = delete;

  bool found() const { return found_; }
  fs::path root() const { return root_; }

  // A shell line in the root; its output, or nothing when it failed.
  std::optional<std::string> run(const std::string& line) const {
    const std::string all = fmt::format(
        "cd {} && export HOME={} GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b "
        "GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b && ({}) 2>/dev/null",
        root_, root_, line);
    FILE* pipe = popen(all.c_str(), "r");
    std::string out;
    std::array<char, 4096> buffer;
    for (std::size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
      out.append(buffer.data(), n);
    if (pclose(pipe) != 0) return std::nullopt;
    return out;
  }
  void write(const std::string& name, std::string_view bytes) const {
    std::ofstream(fs::path(root_) / name, std::ios::binary) << bytes;
  }
  std::string read(const fs::path& name) const {
    std::ostringstream out;
    out << std::ifstream(fs::path(root_) / name, std::ios::binary).rdbuf();
    return out.str();
  }

private:
  std::string root_;
  bool found_ = false;
};

#define SKIP_WITHOUT_GIT(git)                                                                      \
  if (!(git).found()) GTEST_SKIP() << "git is not installed: nothing to compare with"

// What git lists: key, and value if there is an '='.
using Listed = std::vector<std::pair<std::string, std::optional<std::string>>>;

std::optional<Listed> listed_by_git(const Git& git, std::string_view bytes) {
  git.write("config", bytes);
  const auto out = git.run("git config --list -z --file config");
  if (!out) return std::nullopt;
  Listed listed;
  for (std::size_t at = 0; at < out->size();) {
    const std::size_t end = out->find('\0', at);
    const std::string item = out->substr(at, end - at);
    const std::size_t line = item.find('\n');
    if (line == std::string::npos)
      listed.emplace_back(item, std::nullopt);
    else
      listed.emplace_back(item.substr(0, line), item.substr(line + 1));
    at = end + 1;
  }
  return listed;
}

// Git before 2.45 makes a space of white space inside a value, later ones keep it.
std::string with_spaces(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\t' || c == '\r'; }, ' ');
  return text;
}

TEST(GitConfig, ReadsEveryFormOfTheSyntax) {
  const auto entries = parse_git_config("\xEF\xBB\xBF[Core]\tBare ; no value\n"
                                        "[core]\r\n fileMode = true # why\r\n"
                                        "[remote \"a\\\"B c\"] Url = \"x ; y\" z  \\\n  w\n"
                                        "[branch.Main]\nmerge=\n[a \"b\"]x=\\t\\n\\\\\\\"\n");
  ASSERT_FALSE(entries.has_value()); // a comment after a key without '=' is none of git's forms
  const auto read = parse_git_config("\xEF\xBB\xBF[Core]\tBare\n"
                                     "[core]\r\n fileMode = true # why\r\n"
                                     "[remote \"a\\\"B c\"] Url = \"x ; y\" z  \\\n  w\n"
                                     "[branch.Main]\nmerge=\n[a \"b\"]x=\\t\\n\\\\\\\"\n");
  ASSERT_TRUE(read.has_value()) << read.error().text;
  ASSERT_EQ(read->size(), 5U);
  EXPECT_EQ((*read)[0].key, "core.bare");
  EXPECT_EQ((*read)[0].shown, "Core.Bare");
  EXPECT_EQ((*read)[0].value, std::nullopt);
  EXPECT_EQ((*read)[1].value, "true");
  EXPECT_EQ((*read)[2].key, "remote.a\"B c.url");
  EXPECT_EQ((*read)[2].value, "x ; y z    w");
  EXPECT_EQ((*read)[3].key, "branch.main.merge");
  EXPECT_EQ((*read)[3].value, "");
  EXPECT_EQ((*read)[4].value, "\t\n\\\"");
}

TEST(GitConfig, NamesTheLineItCannotRead) {
  EXPECT_EQ(parse_git_config("[core]\n\n=x\n").error().text, "line 3: not git's syntax");
  EXPECT_EQ(parse_git_config(std::string_view("[a]\0", 4)).error().text, "a NUL byte");
  EXPECT_EQ(parse_git_config(std::string(git_config_bytes_max + 1, '\n')).error().text, "too long");
}

TEST(GitConfig, SplitsKeysAsGitDoes) {
  EXPECT_EQ(split_git_config_key("core.bare").subsection, std::nullopt);
  EXPECT_EQ(split_git_config_key("core..bare").subsection, "");
  EXPECT_EQ(split_git_config_key("remote.a.b.url").subsection, "a.b");
  EXPECT_EQ(split_git_config_key("remote.a.b.url").name, "url");
}

// Differential: the same list of keys and values as git, and the same files refused.
void same_as_git(const Git& git, std::string_view bytes) {
  const auto theirs = listed_by_git(git, bytes);
  const auto ours = parse_git_config(bytes);
  ASSERT_EQ(theirs.has_value(), ours.has_value()) << testing::PrintToString(std::string(bytes));
  if (!ours) return;
  ASSERT_EQ(theirs->size(), ours->size()) << testing::PrintToString(std::string(bytes));
  for (std::size_t i = 0; i < ours->size(); ++i) {
    const auto& [key, value] = (*theirs)[i];
    ASSERT_EQ(key, (*ours)[i].key);
    ASSERT_EQ(value.has_value(), (*ours)[i].value.has_value()) << key;
    if (value) {
      ASSERT_EQ(with_spaces(*value), with_spaces(*(*ours)[i].value)) << key;
    }
  }
}

TEST(GitConfig, SameListAsGit) {
  const Git git;
  SKIP_WITHOUT_GIT(git);
  // Pieces, biased to what is valid: each file is a few lines, of which some are mangled.
  const std::vector<std::string> lines = {"[core]\n",
                                          "[Core]\r\n",
                                          "[a.B]\n",
                                          "[remote \"x y\"]\n",
                                          "[a \"b\\\"c\"]",
                                          "[ \"x\"]",
                                          "[.]\n",
                                          "[a\t \"q\"]\n",
                                          "[a \"\xC3\xA9\"]\n",
                                          "key\n",
                                          "hooksPath = x\n",
                                          "url = y # z\n",
                                          "\tk-1=\"a ; b\" c\n",
                                          "v = a \\\n   b\n",
                                          "\tw = \\t\\n\\\\\\\"\\b\n",
                                          "# c\\\n",
                                          "; d\n",
                                          "Key =   \n",
                                          "t = a\tb\n",
                                          "q = \"a\tb\"\n",
                                          "r = a\r\n",
                                          "s = \"\"  x \"\"\n",
                                          "\n",
                                          "  \r\n"};
  const std::vector<std::string> noise = {"[",        "]",  "\"", "\\",   "\\q",          "=",
                                          "#",        ";",  "\r", "\n",   "\t",           " ",
                                          ".",        "-",  "1",  "_",    "\xEF\xBB\xBF", "\xEF",
                                          "\xC3\xA9", "\f", "\v", "\x01", "\\\n",         "\\\r\n",
                                          "[a \"",    "[b"};
  const bool held = rc::check("lists as git does", [&] {
    std::string bytes =
        *rc::gen::elementOf(std::vector<std::string>{"[s]\n", "", "\xEF\xBB\xBF[s]"});
    const auto count = *rc::gen::inRange(1, 8);
    for (int i = 0; i < count; ++i) bytes += *rc::gen::elementOf(lines);
    const auto mangled = *rc::gen::inRange(0, 3);
    for (int i = 0; i < mangled; ++i)
      bytes.insert(*rc::gen::inRange(std::size_t{0}, bytes.size() + 1), *rc::gen::elementOf(noise));
    same_as_git(git, bytes);
    RC_ASSERT(!testing::Test::HasFatalFailure());
  });
  EXPECT_TRUE(held);
}

TEST(GitConfig, SameListAsGitOnChosenFiles) {
  const Git git;
  SKIP_WITHOUT_GIT(git);
  for (const std::string_view bytes : {"",
                                       "\n",
                                       "x=1",
                                       "x",
                                       "[a]x",
                                       "[a]x=\"",
                                       "[a]x=\\",
                                       "[a]x=y\\\n",
                                       "[a]x=y\\\r\nz",
                                       "[a]x \t= y",
                                       "[a]x ;",
                                       "[a]x;",
                                       "[a]x\r",
                                       "[a]x\r\n",
                                       "[a]x = \r y",
                                       "[a]x = y\r",
                                       "[a]x = \"y\" \"z\" ;\" ",
                                       "[a]x=1[b]y=2",
                                       "[a]x=1\n[b] y=2",
                                       "[a \"b\nc\"]x",
                                       "[a \"\\\n\"]x",
                                       "[a\"b\"]x",
                                       "[a \"b\" ]x",
                                       "[a \"b\"]]x",
                                       "[a b]x",
                                       "[]x=1",
                                       "[..]x=1",
                                       "[a..b]x=1",
                                       "[a \"\"]x=1",
                                       "[ \"\"]x",
                                       "[a]\n#c\\\nx=1",
                                       "[a]x=;\n",
                                       "[a]x=#\n",
                                       "\xEF\xBB\xBF",
                                       "\xEF\xBB",
                                       "\n\xEF\xBB\xBF[a]x",
                                       "[a",
                                       "[a]x=\"b\nc\"",
                                       "[a]x=\"b\\\nc\"",
                                       "[a]\vx=1",
                                       "[a]x=1\f",
                                       "[a]x=b\tc",
                                       "[a]x=\"b\tc\"",
                                       "[a]x=  \"  b  \"  ",
                                       "[a]x=\"\"  b",
                                       "[A.b \"C.d\"]E=1",
                                       "[a]x-y=1",
                                       "[a]x_y=1",
                                       "[\xC3\xA9]x=1",
                                       "[a]\xC3\xA9=1",
                                       "]",
                                       "[a]x=\\",
                                       "[a]x=b\\",
                                       "[a]x=\"b\\",
                                       "[a \"b\\",
                                       "[a \"\\q\"]x=1",
                                       "[a]1x=1",
                                       "[1a]x=1",
                                       "[a-b]x=1",
                                       "[a]-x=1",
                                       "[a]x==y",
                                       "[a]x=\xFF\xFE",
                                       "[a \"\xFF\"]x=1",
                                       "[a\r\"b\"]x"}) {
    same_as_git(git, bytes);
    if (HasFatalFailure()) return;
  }
}

TEST(GitConfig, OrdinaryWorkPasses) {
  const Git git;
  SKIP_WITHOUT_GIT(git);
  ASSERT_TRUE(
      git.run("git init -q -b main up && cd up && git commit -q --allow-empty -m 1 && "
              "git tag v1 && git branch topic && cd .. && git clone -q --bare up bare.git && "
              "git init -q -b main lib && cd lib && git commit -q --allow-empty -m 1"));
  const std::vector<std::string> steps = {
      "git init -q -b main p",
      "rm -rf p && git clone -q bare.git p",
      "rm -rf p && git clone -q --filter=blob:none file://$PWD/bare.git p",
      "rm -rf p && git clone -q --mirror bare.git p/.git",
      "rm -rf p && git clone -q --single-branch --no-tags bare.git p",
      "rm -rf p && git clone -q bare.git p",
      "cd p && git remote add up https://example.com/a/b.git",
      "cd p && git remote add --mirror=fetch m git@example.com:a/b.git",
      "cd p && git remote set-url --push up ssh://git@example.com:2222/a/b.git",
      "cd p && git remote rename up upstream",
      "cd p && git remote set-branches --add upstream 'rel/*'",
      "cd p && git remote remove m",
      "cd p && git config remote.pushDefault upstream",
      "cd p && git branch --track t origin/topic",
      "cd p && git checkout -q -b own && git branch -u origin/main",
      "cd p && git checkout -q --track -b w origin/topic",
      "cd p && git branch -m w w2",
      "cd p && git config branch.w2.description 'two\nlines\tand \"quotes\"'",
      "cd p && git branch -D t",
      "cd p && git worktree add -q ../wt own",
      "cd p && git config extensions.worktreeConfig true",
      "cd p && git sparse-checkout init --cone && git sparse-checkout set a b",
      "cd p && git sparse-checkout disable",
      "cd p && git -c protocol.file.allow=always submodule add -q ../lib lib",
      "cd p && git submodule init && git submodule sync",
      "cd p && git submodule set-branch -b main lib",
      "cd p && git submodule deinit -f lib",
      "cd p && git config user.name 'A. B' && git config user.email a@example.com",
      "cd p && git config core.autocrlf input && git config core.fileMode false",
      "cd p && git config core.fsmonitor false",
      "cd p && git config pull.rebase true && git config --unset pull.rebase",
      "cd p && git config push.autoSetupRemote true && git config fetch.prune true",
      "cd p && git config --add remote.origin.fetch '+refs/pull/*/head:refs/remotes/pr/*'",
      "cd p && git config --unset-all remote.origin.fetch",
      "cd p && git config color.diff.meta 'yellow bold' && git config color.ui auto",
      "cd p && git config rerere.enabled 1 && git config diff.colorMoved zebra",
      "cd p && git config commit.gpgsign false && git config advice.detachedHead false",
      "cd p && git config feature.manyFiles true && git config gc.auto 0",
      "cd p && git config --remove-section feature",
      "cd p && git config blame.ignoreRevsFile .git-blame-ignore-revs",
      "cd p && git update-index --split-index && git update-index --untracked-cache",
      "cd p && git maintenance run --task=gc && git gc -q",
  };
  const auto configs = [&git] {
    std::vector<fs::path> out;
    for (const auto& item : fs::recursive_directory_iterator(git.root()))
      if (item.is_regular_file() &&
          (item.path().filename() == "config" || item.path().filename() == "config.worktree"))
        out.push_back(item.path());
    return out;
  };
  std::map<fs::path, std::string> before;
  std::size_t judged = 0;
  for (const std::string& step : steps) {
    EXPECT_TRUE(git.run(step).has_value()) << step;
    for (const fs::path& path : configs()) {
      const std::string now = git.read(path);
      // `rm -rf` and a new clone: there is no old file then.
      const std::string old = step.starts_with("rm") ? std::string{} : before[path];
      if (now != old) {
        ++judged;
        const Judgement judgement = judge_git_config(old, now, path.native());
        EXPECT_TRUE(judgement.ok) << step << "\n" << judgement.rule << "\n" << now;
        EXPECT_TRUE(judge_change(Judge::git_config, old, now, {path.native(), {}}).ok) << step;
      }
      before[path] = now;
    }
  }
  EXPECT_GT(judged, 30U);
}

} // namespace
} // namespace nd7
