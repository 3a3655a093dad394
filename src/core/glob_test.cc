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

// A git repository with one directory a pattern, asked about many paths by one git process.
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
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }
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

// Drawn by hand and not run by rapidcheck, so that one git process answers for many patterns.
TEST(Glob, AgreesWithGitCheckIgnore) {
  CheckIgnore git;
  if (!git.usable()) GTEST_SKIP() << "git is missing or cannot make a repository";
  std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  rc::Random random(seed);
  std::vector<CheckIgnore::Question> questions;
  for (int i = 0; i < 100; ++i) {
    CheckIgnore::Question question{pattern_gen()(random.split(), 12).value(), {}};
    if (question.pattern.starts_with('#') || !Glob::parse(question.pattern)) continue;
    for (int j = 0; j < 8; ++j) {
      std::string path = path_gen()(random.split(), 6).value();
      if (!path.empty()) question.paths.push_back(path);
    }
    questions.push_back(std::move(question));
  }
  std::vector<bool> theirs = git.ask(questions);
  std::size_t n = 0, matched = 0;
  for (const CheckIgnore::Question& question : questions) {
    Result<Glob> glob = Glob::parse(question.pattern);
    for (bool directory : {false, true}) {
      for (const std::string& path : question.paths) {
        ASSERT_LT(n, theirs.size());
        EXPECT_EQ(glob->matches(path, directory), theirs[n])
            << "pattern <" << question.pattern << "> path <" << path << (directory ? "/" : "")
            << ">";
        if (theirs[n++]) ++matched;
      }
    }
  }
  EXPECT_EQ(n, theirs.size());
  EXPECT_GT(matched, 0u);
}

} // namespace
} // namespace nd7
