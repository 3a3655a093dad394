#include "core/glob.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

namespace nd7 {
namespace {

bool matches(const std::string& pattern, const std::string& path, bool is_directory = false) {
  Result<Glob> glob = Glob::parse(pattern);
  EXPECT_TRUE(glob.has_value()) << pattern;
  return glob && glob->matches(path, is_directory);
}

TEST(Glob, NameWithoutSlashMatchesAtAnyDepth) {
  EXPECT_TRUE(matches(".env", ".env"));
  EXPECT_TRUE(matches(".env", "a/b/.env"));
  EXPECT_TRUE(matches(".env.*", "a/.env.local"));
  EXPECT_FALSE(matches(".env", "a/.envrc"));
}

TEST(Glob, WhatLiesBelowAMatchedDirectoryMatches) {
  EXPECT_TRUE(matches("**/migrations/", "db/migrations/1.sql"));
  EXPECT_TRUE(matches("**/migrations/", "migrations", true));
  EXPECT_FALSE(matches("**/migrations/", "migrations", false));
  EXPECT_TRUE(matches("/a", "a/b/c"));
  EXPECT_FALSE(matches("/a", "b/a"));
}

TEST(Glob, StarsAndSlashes) {
  EXPECT_FALSE(matches("/a/*", "a"));
  EXPECT_TRUE(matches("/a/*", "a/b/c"));
  EXPECT_FALSE(matches("/*.key", "a/b.key"));
  EXPECT_TRUE(matches("a/**/z", "a/z"));
  EXPECT_TRUE(matches("a/**/z", "a/b/c/z"));
  EXPECT_FALSE(matches("a/**/z", "az"));
  EXPECT_TRUE(matches("a/**", "a/b/c"));
  EXPECT_FALSE(matches("a/**", "a", true));
  EXPECT_TRUE(matches("**", "any/thing"));
  EXPECT_FALSE(matches("a?b", "a/b"));
  EXPECT_FALSE(matches("/a[^x]b", "a/b"));
}

TEST(Glob, PatternsThatCannotMatchAreErrors) {
  for (const char* bad : {"", "/", " ", "!a", "a[", "a[b", "[]", "[!]", "a\\", "[[:nonsense:]]"})
    EXPECT_FALSE(Glob::parse(bad).has_value()) << bad;
  EXPECT_FALSE(Glob::parse(std::string("a\0b", 3)).has_value());
  EXPECT_FALSE(Glob::parse(std::string(5000, 'a')).has_value());
}

TEST(Glob, HostilePatternsStayQuick) {
  std::string pattern, path;
  for (int i = 0; i < 100; ++i) pattern += "a*";
  path.assign(2000, 'a');
  EXPECT_FALSE(matches(pattern + "b", path));
  pattern.clear();
  for (int i = 0; i < 100; ++i) pattern += "**/a/";
  path.clear();
  for (int i = 0; i < 150; ++i) path += "a/";
  EXPECT_FALSE(matches(pattern + "b", path + "c"));
}

TEST(Glob, ReachesBelow) {
  auto reaches = [](const char* pattern, const char* directory) {
    return Glob::parse(pattern)->reaches_below(directory);
  };
  EXPECT_TRUE(reaches("/a/b/*.key", ""));
  EXPECT_TRUE(reaches("/a/b/*.key", "a"));
  EXPECT_TRUE(reaches("/a/b/*.key", "a/b"));
  EXPECT_TRUE(reaches("/a/b/*.key", "a/b/c.key"));
  EXPECT_FALSE(reaches("/a/b/*.key", "a/b/c"));
  EXPECT_FALSE(reaches("/a/b/*.key", "b"));
  EXPECT_TRUE(reaches("*.key", "anywhere"));
  EXPECT_TRUE(reaches("a/**/k", "a/x/y"));
  EXPECT_FALSE(reaches("a/**/k", "b/x/y"));
}

TEST(Glob, LiteralStarts) {
  using Starts = std::vector<std::string>;
  const auto starts = [](const char* pattern) { return Glob::parse(pattern)->literal_starts(); };
  EXPECT_EQ(starts("/a/b*c"), Starts{"a/b"});
  EXPECT_EQ(starts("a/b/"), Starts{"a/b"});
  EXPECT_EQ(starts("*.key"), Starts{""});
  EXPECT_EQ(starts("name"), Starts{""});
  EXPECT_EQ(starts("**/a/b"), Starts{""});
  EXPECT_EQ(starts("/[#.]x[ab]y"), (Starts{"#xay", "#xby", ".xay", ".xby"}));
  EXPECT_EQ(starts("/\\*x?"), Starts{"*x"});
}

// Few letters, so that patterns and paths meet often.
rc::Gen<std::string> pattern_gen() {
  return rc::gen::map(
      rc::gen::container<std::vector<std::string>>(rc::gen::weightedElement<std::string>(
          {{6, "a"},           {5, "b"},      {3, "."},   {5, "/"},    {4, "*"},     {3, "**"},
           {2, "**/"},         {2, "/**/"},   {2, "?"},   {1, "[ab]"}, {1, "[!a]"},  {1, "[a-b]"},
           {1, "[[:alpha:]]"}, {1, "\\a"},    {1, "\\*"}, {1, "[]a]"}, {1, "[^]b]"}, {1, " "},
           {1, "[b-a]"},       {1, "[a\\]]"}, {1, "[.-]"}})),
      [](const std::vector<std::string>& parts) {
        // Not longer: git itself takes exponential time with many stars.
        std::string out;
        for (std::size_t i = 0; i < parts.size() && i < 9; ++i) out += parts[i];
        return out;
      });
}

rc::Gen<std::string> path_gen() {
  auto name = rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::weightedElement<char>(
      {{5, 'a'}, {5, 'b'}, {1, '.'}, {1, '*'}, {1, ']'}, {1, '-'}})));
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(name),
                      [](const std::vector<std::string>& names) {
                        std::string out;
                        for (std::size_t i = 0; i < names.size() && i < 5; ++i) {
                          const std::string& part = names[i];
                          if (part == "." || part == "..") continue;
                          if (!out.empty()) out += '/';
                          out += part.substr(0, 4);
                        }
                        return out;
                      });
}

RC_GTEST_PROP(Glob, ReachesBelowIsNeverWronglyFalse, ()) {
  Result<Glob> glob = Glob::parse(*pattern_gen());
  RC_PRE(glob.has_value());
  std::string directory = *path_gen(), rest = *path_gen();
  RC_PRE(!rest.empty());
  std::string path = directory.empty() ? rest : directory + "/" + rest;
  if (glob->matches(path, false) || glob->matches(path, true))
    RC_ASSERT(glob->reaches_below(directory));
}

RC_GTEST_PROP(Glob, EveryMatchBeginsWithALiteralStart, ()) {
  Result<Glob> glob = Glob::parse(*pattern_gen());
  RC_PRE(glob.has_value());
  std::string path = *path_gen();
  if (!glob->matches(path, true)) return;
  bool begins = false;
  for (const std::string& start : glob->literal_starts()) begins |= path.starts_with(start);
  RC_ASSERT(begins);
}

// A git repository with two directories a pattern, asked about many paths by one git process.
class CheckIgnore {
public:
  struct Question {
    std::string pattern;
    std::vector<std::string> paths;
  };

  CheckIgnore() {
    const char* tmp = std::getenv("TMPDIR");
    std::string text = std::string(tmp ? tmp : "/tmp") + "/nd7_glob_XXXXXX";
    directory_ = ::mkdtemp(text.data()) ? text : "";
    usable_ = !directory_.empty() && run("git init -q . 2>/dev/null") == 0;
  }
  ~CheckIgnore() {
    std::error_code ignored;
    if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
  }
  CheckIgnore(const CheckIgnore&) = delete;
  CheckIgnore& operator=(const CheckIgnore&) = delete;
  bool usable() const { return usable_; }

  // For each question all its paths as files, then all as directories: ignored or not.
  std::vector<bool> ask(const std::vector<Question>& questions) {
    std::ofstream in(directory_ + "/.git/in", std::ios::binary);
    for (std::size_t i = 0; i < questions.size(); ++i) {
      // Below f nothing exists, so git takes paths there for files; below d all are directories.
      for (std::string name : {"f" + std::to_string(i), "d" + std::to_string(i)}) {
        std::filesystem::create_directory(directory_ + "/" + name);
        std::ofstream(directory_ + "/" + name + "/.gitignore") << questions[i].pattern << '\n';
        for (const std::string& path : questions[i].paths) {
          if (name[0] == 'd')
            std::filesystem::create_directories(directory_ + "/" + name + "/" + path);
          in << name << '/' << path << '\0';
        }
      }
    }
    in.close();
    run("git -c core.excludesFile=/dev/null check-ignore -v -n -z --no-index --stdin "
        "< .git/in > .git/out 2>/dev/null");
    std::ifstream out(directory_ + "/.git/out", std::ios::binary);
    std::vector<bool> answer;
    std::string source, line, text, path;
    while (std::getline(out, source, '\0') && std::getline(out, line, '\0') &&
           std::getline(out, text, '\0') && std::getline(out, path, '\0'))
      answer.push_back(!source.empty());
    return answer;
  }

private:
  int run(const std::string& command) const {
    return std::system(("cd '" + directory_ + "' && " + command).c_str());
  }
  std::string directory_;
  bool usable_ = false;
};

// Not a RC_GTEST_PROP: shrinking would start a git process a step. The seed is printed instead.
TEST(Glob, AgreesWithGitCheckIgnore) {
  CheckIgnore git;
  if (!git.usable()) GTEST_SKIP() << "git is missing or cannot make a repository";
  const char* given = std::getenv("ND7_GLOB_SEED");
  const unsigned seed = given ? static_cast<unsigned>(std::atoi(given)) : std::random_device{}();
  std::mt19937 random(seed);
  const auto pick = [&](const auto& from) {
    return from[random() % (sizeof from / sizeof from[0])];
  };
  static const char* const pieces[] = {
      "a",           "a",   "a",   "b",    "b",     ".",    "/",     "/",      "/",    "*",
      "*",           "**",  "**/", "**/",  "/**/",  "/**/", "?",     "[ab]",   "[!a]", "[a-b]",
      "[[:alpha:]]", "\\a", "\\*", "[]a]", "[^]b]", " ",    "[b-a]", "[a\\]]", "[.-]"};
  static const char letters[] = {'a', 'a', 'a', 'b', 'b', '.', '*', ']', '-'};
  std::vector<CheckIgnore::Question> questions;
  while (questions.size() < 150) {
    CheckIgnore::Question question;
    // Not longer: git itself takes exponential time with many stars.
    for (std::size_t k = 1 + random() % 8; k > 0; --k) question.pattern += pick(pieces);
    if (!Glob::parse(question.pattern)) continue;
    for (int i = 0; i < 8; ++i) {
      std::string path;
      for (std::size_t depth = 1 + random() % 4; depth > 0; --depth) {
        std::string name;
        for (std::size_t n = 1 + random() % 3; n > 0; --n) name += pick(letters);
        if (name == "." || name == "..") name = "a";
        path += (path.empty() ? "" : "/") + name;
      }
      question.paths.push_back(std::move(path));
    }
    questions.push_back(std::move(question));
  }
  const std::vector<bool> theirs = git.ask(questions);
  std::size_t n = 0, ignored = 0;
  for (const CheckIgnore::Question& question : questions) {
    const Result<Glob> glob = Glob::parse(question.pattern);
    for (const bool directory : {false, true}) {
      for (const std::string& path : question.paths) {
        ASSERT_LT(n, theirs.size()) << "git gave up; seed " << seed;
        EXPECT_EQ(glob->matches(path, directory), theirs[n])
            << "pattern <" << question.pattern << "> path <" << path << (directory ? "/" : "")
            << ">, seed " << seed;
        ignored += theirs[n++] ? std::size_t{1} : 0;
      }
    }
  }
  EXPECT_EQ(n, theirs.size());
  EXPECT_GT(ignored, n / 20) << "the patterns hardly match anything: the test has lost its teeth";
}

} // namespace
} // namespace nd7
