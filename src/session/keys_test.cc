#include "session/keys.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "os/files.h"

namespace nd7 {
namespace {

namespace fs = std::filesystem;

class KeysTest : public ::testing::Test {
protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "nd7-keys-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    top_ = name;
    keys_ = top_ + "/keys";
  }
  void TearDown() override { fs::remove_all(top_); }
  std::string error() const {
    auto key = machine_key(keys_);
    return key ? "" : key.error().text;
  }
  std::string top_, keys_;
};

TEST_F(KeysTest, TheKeyIsMadeOnceAndKept) {
  EXPECT_FALSE(machine_public_key(keys_));
  EXPECT_TRUE(machine_public_keys(keys_)->empty());
  const auto first = machine_key(keys_);
  ASSERT_TRUE(first) << first.error().text;
  const auto second = machine_key(keys_);
  ASSERT_TRUE(second);
  EXPECT_EQ(first->public_hex, second->public_hex);
  EXPECT_EQ(first->id.size(), 16u);
  EXPECT_EQ(*machine_public_key(keys_), first->public_hex);
  EXPECT_EQ(*machine_public_keys(keys_), std::vector<std::string>{first->public_hex});
  struct stat st {};
  ASSERT_EQ(::stat((keys_ + "/machine.key").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0600u);
  const auto check = signature_checker({first->public_hex});
  const std::string signature = first->sign("message");
  EXPECT_EQ((*check)(first->id, "message", signature), SignatureAnswer::good);
  EXPECT_EQ((*check)(first->id, "messagf", signature), SignatureAnswer::bad);
  EXPECT_EQ((*check)(first->id, "message", signature.substr(2)), SignatureAnswer::bad);
  EXPECT_EQ((*check)("0000000000000000", "message", signature), SignatureAnswer::unknown_key);
}

TEST_F(KeysTest, ADamagedKeyIsAnErrorAndStaysAsItIs) {
  ASSERT_EQ(error(), "");
  const std::string path = keys_ + "/machine.key";
  const std::string good = *os::read_file(path, 1000);
  for (const std::string& bad : {std::string(), good.substr(0, 20), good.substr(0, good.size() - 1),
                                 good + "x", std::string(good.size(), 'z')}) {
    ASSERT_TRUE(os::replace_file(path, bad));
    EXPECT_NE(error(), "");
    EXPECT_EQ(*os::read_file(path, 1000), bad);
  }
  ASSERT_TRUE(os::replace_file(path, good));
  EXPECT_EQ(error(), "");
}

TEST_F(KeysTest, ALostKeyIsNotReplacedInSilence) {
  ASSERT_EQ(error(), "");
  ASSERT_EQ(::unlink((keys_ + "/machine.key").c_str()), 0);
  EXPECT_NE(error().find("is gone"), std::string::npos);
  EXPECT_FALSE(fs::exists(keys_ + "/machine.key"));
}

TEST_F(KeysTest, AKeyOpenToOthersIsRefused) {
  ASSERT_EQ(error(), "");
  ASSERT_EQ(::chmod((keys_ + "/machine.key").c_str(), 0640), 0);
  EXPECT_NE(error().find("open to others"), std::string::npos);
}

TEST_F(KeysTest, ManyProcessesAtOnceAgreeOnOneKey) {
  std::vector<pid_t> children;
  for (int i = 0; i < 16; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(machine_key(keys_) ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(machine_public_keys(keys_)->size(), 1u);
  EXPECT_EQ(*machine_public_keys(keys_), std::vector<std::string>{*machine_public_key(keys_)});
}

} // namespace
} // namespace nd7
