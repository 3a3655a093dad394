#include "os/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace nd7::os {
namespace {

class FilesTest : public ::testing::Test {
protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "nd7-files-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    top_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(top_); }
  std::string top_;
};

TEST_F(FilesTest, ReplacingIsWholeAndLeavesNothingBeside) {
  const std::string path = top_ + "/f";
  ASSERT_TRUE(replace_file(path, "one"));
  ASSERT_TRUE(replace_file(path, "two", {.mode = 0644}));
  EXPECT_EQ(*read_file(path, 10), "two");
  struct stat st {};
  ASSERT_EQ(::stat(path.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0644u);
  EXPECT_EQ(*list_directory(top_), std::vector<std::string>{"f"});
  const auto kept = replace_file(path, "three", {.replace = false});
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().os_errno, EEXIST);
  EXPECT_EQ(*read_file(path, 10), "two");
  EXPECT_EQ(*list_directory(top_), std::vector<std::string>{"f"});
  EXPECT_FALSE(replace_file(top_ + "/no/f", "x"));
}

TEST_F(FilesTest, ReadingHasABound) {
  ASSERT_TRUE(replace_file(top_ + "/f", "12345"));
  EXPECT_EQ(*read_file(top_ + "/f", 5), "12345");
  EXPECT_FALSE(read_file(top_ + "/f", 4));
  EXPECT_EQ(read_file(top_ + "/g", 4).error().os_errno, ENOENT);
  EXPECT_FALSE(read_file("/proc/self/status", 100000)->empty());
  auto fd = open_file(top_ + "/f", O_RDONLY);
  EXPECT_EQ(*read_at(fd->get(), 3, 100), "45");
  EXPECT_EQ(*file_size(fd->get()), 5u);
}

TEST_F(FilesTest, ALockKeepsOthersOutUntilItIsGone) {
  const std::string path = top_ + "/lock";
  EXPECT_FALSE(is_locked(path));
  {
    auto lock = lock_file(path, LockWait::no);
    ASSERT_TRUE(lock);
    EXPECT_TRUE(lock->held());
    EXPECT_TRUE(is_locked(path));
    EXPECT_EQ(lock_file(path, LockWait::no).error().os_errno, EWOULDBLOCK);
  }
  EXPECT_FALSE(is_locked(path));
  ASSERT_EQ(::symlink(path.c_str(), (top_ + "/link").c_str()), 0);
  EXPECT_FALSE(lock_file(top_ + "/link", LockWait::no));
}

TEST_F(FilesTest, AMissingDirectoryListsNothing) {
  EXPECT_TRUE(list_directory(top_ + "/none")->empty());
  ASSERT_TRUE(replace_file(top_ + "/f", ""));
  EXPECT_FALSE(list_directory(top_ + "/f"));
}

} // namespace
} // namespace nd7::os
