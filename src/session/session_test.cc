#include "session/session.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "os/files.h"
#include "session/log_file.h"

namespace nd7 {
namespace {

namespace fs = std::filesystem;

class SessionTest : public ::testing::Test {
protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "nd7-places-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    top_ = name;
    ::setenv("HOME", top_.c_str(), 1);
    for (const char* v :
         {"XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"}) {
      ::unsetenv(v);
    }
  }
  void TearDown() override { fs::remove_all(top_); }
  std::string top_;
};

TEST_F(SessionTest, PlacesFollowHomeAndXdg) {
  const auto places = find_places();
  ASSERT_TRUE(places);
  EXPECT_EQ(places->home, top_);
  EXPECT_EQ(places->state, top_ + "/.local/state/nd7");
  EXPECT_EQ(places->runtime, top_ + "/.local/state/nd7/run");
  ::setenv("XDG_STATE_HOME", "/x/state/", 1);
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(find_places()->state, "/x/state/nd7");
  EXPECT_EQ(find_places()->cache, top_ + "/.cache/nd7");
}

TEST_F(SessionTest, ARuntimeDirectoryThatIsNotPrivateIsPassedOver) {
  const std::string runtime = top_ + "/run";
  ASSERT_EQ(::mkdir(runtime.c_str(), 0700), 0);
  ::setenv("XDG_RUNTIME_DIR", runtime.c_str(), 1);
  EXPECT_EQ(find_places()->runtime, runtime + "/nd7");
  ASSERT_EQ(::chmod(runtime.c_str(), 0755), 0);
  EXPECT_EQ(find_places()->runtime, find_places()->state + "/run");
}

TEST_F(SessionTest, AnUnusableHomeFallsBackToThePasswdEntry) {
  for (const char* home : {"", "/", "relative", "/nonexistent/home"}) {
    ::setenv("HOME", home, 1);
    const auto places = find_places();
    if (!places) continue;
    EXPECT_EQ(places->home, places->passwd_home) << home;
  }
}

TEST_F(SessionTest, IdsAreUuidsOfVersion7ThatSortByTime) {
  std::set<std::string> ids;
  std::string before;
  for (int i = 0; i < 200; ++i) {
    const std::string id = new_session_id();
    ASSERT_EQ(id.size(), 36u);
    EXPECT_EQ(id[14], '7');
    EXPECT_NE(std::string("89ab").find(id[19]), std::string::npos);
    EXPECT_TRUE(is_safe_id(id));
    EXPECT_LE(before.substr(0, 18), id.substr(0, 18));
    EXPECT_TRUE(ids.insert(id).second);
    before = id;
  }
}

TEST_F(SessionTest, IdsThatCouldLeaveTheDirectoryAreUnsafe) {
  for (const char* bad : {"", ".", "..", "a/b", "../x", "a b", "a\n", "ä"}) {
    EXPECT_FALSE(is_safe_id(bad)) << bad;
  }
  EXPECT_FALSE(is_safe_id(std::string(129, 'a')));
  EXPECT_FALSE(is_safe_id(std::string_view("a\0b", 3)));
  EXPECT_TRUE(is_safe_id("0199-A_b.c"));
}

TEST_F(SessionTest, SessionsAreFoundByPrefixAndByTheAgentsOwnId) {
  const Places places = *find_places();
  EXPECT_FALSE(find_session(places, ""));
  const auto make = [&](const std::string& id, const std::string& meta) {
    auto log = LogFile::open(session_directory(places, id), id, true);
    ASSERT_TRUE(log) << log.error().text;
    ASSERT_TRUE((*log)->append({.source = "nd7", .kind = "start", .body = "{}"}));
    ASSERT_TRUE(os::replace_file(session_directory(places, id) + "/meta.json", meta));
  };
  make("0001-aaa", R"({"started_ns":100,"agent_session":"own-1"})");
  make("0001-bbb", R"({"started_ns":300,"agent_session":"own-2"})");
  make("0002-ccc", R"({"started_ns":200})");
  const auto sessions = list_sessions(places);
  ASSERT_TRUE(sessions);
  ASSERT_EQ(sessions->size(), 3u);
  EXPECT_EQ((*sessions)[0].id, "0001-bbb");
  EXPECT_EQ((*sessions)[2].id, "0001-aaa");
  EXPECT_EQ(find_session(places, "")->id, "0001-bbb");
  EXPECT_EQ(find_session(places, "0002")->id, "0002-ccc");
  EXPECT_EQ(find_session(places, "own-1")->id, "0001-aaa");
  const auto several = find_session(places, "0001");
  ASSERT_FALSE(several);
  EXPECT_NE(several.error().text.find("0001-aaa"), std::string::npos);
  EXPECT_NE(several.error().text.find("0001-bbb"), std::string::npos);
  EXPECT_FALSE(find_session(places, "zzz"));
  EXPECT_FALSE(find_session(places, "../../etc"));
}

TEST_F(SessionTest, ASessionRunsWhileItsLockIsHeld) {
  const Places places = *find_places();
  auto log = LogFile::open(session_directory(places, "s"), "s", true);
  ASSERT_TRUE(log);
  EXPECT_TRUE(find_session(places, "s")->running);
  log->reset();
  EXPECT_FALSE(find_session(places, "s")->running);
}

TEST_F(SessionTest, PrivateDirectoriesRefuseLinksAndOpenModes) {
  EXPECT_TRUE(make_private_directory(top_ + "/a/b/c"));
  struct stat st {};
  ASSERT_EQ(::stat((top_ + "/a").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0700u);
  fs::create_directory_symlink(top_ + "/a", top_ + "/link");
  EXPECT_FALSE(make_private_directory(top_ + "/link"));
  ASSERT_EQ(::mkdir((top_ + "/open").c_str(), 0755), 0);
  EXPECT_FALSE(make_private_directory(top_ + "/open"));
  EXPECT_FALSE(make_private_directory("relative"));
  EXPECT_TRUE(os::replace_file(top_ + "/file", ""));
  EXPECT_FALSE(make_private_directory(top_ + "/file"));
}

} // namespace
} // namespace nd7
