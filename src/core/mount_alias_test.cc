#include "core/mount_alias.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace nd7 {
namespace {

constexpr const char* desktop =
    "22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p1 rw\n"
    "23 22 0:21 / /proc rw - proc proc rw\n"
    "30 22 259:1 /home /mnt/every\\040thing rw - ext4 /dev/nvme0n1p1 rw\n"
    "31 22 259:2 / /data rw - ext4 /dev/nvme1n1p1 rw\n"
    "32 22 259:2 /secure/gnupg /home/u/.gnupg rw - ext4 /dev/nvme1n1p1 rw\n"
    "33 22 259:1 /home/u/.ssh/keys /srv/keys rw - ext4 /dev/nvme0n1p1 rw\n"
    "34 22 0:4 net:[4026531833] /run/netns/x rw - nsfs nsfs rw\n";

using Names = std::vector<std::string>;

TEST(Mountinfo, ReadsFieldsAndEscapes) {
  MountTable table = parse_mountinfo(desktop);
  ASSERT_EQ(table.mounts.size(), 7u);
  EXPECT_EQ(table.malformed, 0u);
  EXPECT_EQ(table.mounts[2].point, "/mnt/every thing");
  EXPECT_EQ(table.mounts[2].root, "/home");
  EXPECT_EQ(table.mounts[0].type, "ext4");
  EXPECT_EQ(table.mounts[4].parent, 22);
  EXPECT_EQ(parse_mountinfo("1 0 8:1 / /a\\134b\\011c rw - ext4 x rw").mounts[0].point, "/a\\b\tc");
}

TEST(Mountinfo, OddLinesAreCountedAndDoNotHideOthers) {
  MountTable table =
      parse_mountinfo("nonsense\n\n1 0 8:1 / / rw - ext4 x rw\n1 0 8:1 / / rw ext4\n"
                      "36 35 98:0 / /m rw,noatime master:1 propagate_from:2 - xfs d rw");
  EXPECT_EQ(table.mounts.size(), 2u);
  EXPECT_EQ(table.malformed, 3u);
}

TEST(MountOf, TheLongestPointAndOfEqualOnesTheLastMounted) {
  MountTable table = parse_mountinfo("1 0 8:1 / / rw - ext4 a rw\n2 1 8:2 / /m rw - ext4 b rw\n"
                                     "3 2 8:3 / /m rw - ext4 c rw\n");
  EXPECT_EQ(mount_of(table, "/m/x")->id, 3);
  EXPECT_EQ(mount_of(table, "/mx")->id, 1);
  EXPECT_EQ(mount_of(table, "relative"), nullptr);
}

TEST(OtherNames, BindMountsShowAPlaceTwice) {
  MountTable table = parse_mountinfo(desktop);
  EXPECT_EQ(other_names(table, "/home/u/.aws"), Names{"/mnt/every thing/u/.aws"});
  EXPECT_EQ(other_names(table, "/mnt/every thing/u"), Names{"/home/u"});
  EXPECT_EQ(other_names(table, "/home/u/.gnupg/private-keys-v1.d"),
            Names{"/data/secure/gnupg/private-keys-v1.d"});
  EXPECT_EQ(other_names(table, "/etc"), Names{});
  EXPECT_EQ(other_names(table, "/home/u/.ssh/keys/id"),
            (Names{"/mnt/every thing/u/.ssh/keys/id", "/srv/keys/id"}));
  EXPECT_EQ(other_names(table, "/run/netns/x"), Names{});
}

TEST(OtherNames, WhatIsCoveredByAMountOnTopIsNoName) {
  MountTable table = parse_mountinfo("1 0 8:1 / / rw - ext4 a rw\n2 1 8:1 / /twin rw - ext4 a rw\n"
                                     "3 2 8:9 / /twin/etc rw - tmpfs t rw\n");
  EXPECT_EQ(other_names(table, "/etc/x"), Names{});
  EXPECT_EQ(other_names(table, "/usr/x"), Names{"/twin/usr/x"});
}

Rule deny(Shape shape, std::string path, std::string scope = {}) {
  Rule rule;
  rule.effect = Effect::deny_read;
  rule.shape = shape;
  rule.path = std::move(path);
  rule.scope = std::move(scope);
  rule.objects = {{1, 2}};
  return rule;
}

bool has(const std::vector<Rule>& rules, const std::string& path, const std::string& scope = {}) {
  return std::ranges::any_of(
      rules, [&](const Rule& rule) { return rule.path == path && rule.scope == scope; });
}

TEST(MountAliases, RulesAreWrittenUnderTheOtherMounts) {
  MountTable table = parse_mountinfo(desktop);
  auto rules = with_mount_aliases({deny(Shape::subtree, "/home/u/.ssh"),
                                   deny(Shape::exact, "/home/u/.netrc"),
                                   deny(Shape::glob, "/*.netrc*", "/home/u")},
                                  table);
  EXPECT_TRUE(has(rules, "/home/u/.ssh"));
  EXPECT_TRUE(has(rules, "/mnt/every thing/u/.ssh"));
  EXPECT_TRUE(has(rules, "/srv/keys")); // a part of it, mounted elsewhere
  EXPECT_TRUE(has(rules, "/mnt/every thing/u/.netrc"));
  EXPECT_TRUE(has(rules, "/*.netrc*", "/mnt/every thing/u"));
  EXPECT_EQ(rules[0].objects.size(), 1u);
  EXPECT_TRUE(rules[1].objects.empty());
}

TEST(MountAliases, WhatIsMountedInsideATreeIsFoundElsewhereToo) {
  MountTable table = parse_mountinfo(desktop);
  auto rules = with_mount_aliases({deny(Shape::subtree, "/home/u")}, table);
  EXPECT_TRUE(has(rules, "/data/secure/gnupg"));
}

TEST(MountAliases, RulesThatAllowAreNotCopied) {
  MountTable table = parse_mountinfo(desktop);
  Rule rule = deny(Shape::subtree, "/home/u");
  for (Effect effect : {Effect::allow_read, Effect::allow_write, Effect::own_write}) {
    rule.effect = effect;
    EXPECT_EQ(with_mount_aliases({rule}, table).size(), 1u);
  }
}

TEST(MountAliases, RulesWithoutAScopeStayAlone) {
  EXPECT_EQ(
      with_mount_aliases({deny(Shape::suffix, ".git/hooks/*")}, parse_mountinfo(desktop)).size(),
      1u);
}

// A model of what mounts do: a directory tree per device, paths mapped by the topmost mount. Two
// paths that reach the same file must get the same verdict from the rules with aliases.
RC_GTEST_PROP(MountAliases, NoSecondNameIsLeftOpen, ()) {
  auto directory = rc::gen::map(rc::gen::container<std::vector<char>>(rc::gen::element('a', 'b')),
                                [](const std::vector<char>& names) {
                                  std::string out;
                                  for (std::size_t i = 0; i < names.size() && i < 3; ++i)
                                    out += std::string("/") + names[i];
                                  return out.empty() ? std::string("/") : out;
                                });
  MountTable table;
  table.mounts.push_back({1, 0, "8:1", "/", "/", "ext4"});
  int count = *rc::gen::inRange(0, 5);
  for (int i = 0; i < count; ++i)
    table.mounts.push_back(
        {i + 2, 1, *rc::gen::element<std::string>("8:1", "8:2"), *directory, *directory, "ext4"});
  std::string place = *directory;
  auto rules = with_mount_aliases({deny(Shape::subtree, place)}, table);
  auto file_of = [&](const std::string& path) {
    const Mount* mount = mount_of(table, path);
    std::string rest = mount->point == "/" ? path : path.substr(mount->point.size());
    std::string root = mount->root == "/" ? "" : mount->root;
    std::string inside = root + (rest == "/" ? "" : rest);
    return mount->device + (inside.empty() ? "/" : inside);
  };
  auto denied = [&](const std::string& path) {
    return std::ranges::any_of(rules, [&](const Rule& rule) {
      return rule.path == "/" || path == rule.path || path.starts_with(rule.path + "/");
    });
  };
  std::vector<std::string> paths = {"/"};
  for (std::size_t i = 0; i < paths.size() && paths.size() < 400; ++i)
    for (const char* name : {"a", "b"})
      paths.push_back((paths[i] == "/" ? "" : paths[i]) + "/" + name);
  for (const std::string& secret : paths) {
    if (secret != place && !secret.starts_with(place == "/" ? "/" : place + "/")) continue;
    for (const std::string& other : paths)
      if (file_of(other) == file_of(secret)) RC_ASSERT(denied(other));
  }
}

} // namespace
} // namespace nd7
