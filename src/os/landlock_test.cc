#include "os/landlock.h"

#include <gtest/gtest.h>

namespace nd7::os {
namespace {

LandlockRuleset everything() {
  LandlockRuleset out;
  out.fs = landlock_abis().back().fs;
  out.net = landlock_abis().back().net;
  out.scope = landlock_abis().back().scope;
  out.paths = {{"/", out.fs}};
  return out;
}

TEST(Landlock, RowsAreInOrderAndOnlyGrow) {
  int before = 0;
  std::uint64_t fs = 0, net = 0, scope = 0;
  for (const LandlockAbi& row : landlock_abis()) {
    EXPECT_EQ(row.version, before + 1);
    EXPECT_EQ(row.fs & fs, fs);
    EXPECT_EQ(row.net & net, net);
    EXPECT_EQ(row.scope & scope, scope);
    before = row.version;
    fs = row.fs;
    net = row.net;
    scope = row.scope;
  }
}

TEST(Landlock, DowngradeKeepsWhatTheAbiKnowsAndNamesTheRest) {
  for (const LandlockAbi& row : landlock_abis()) {
    const Downgraded out = downgrade(everything(), row.version);
    ASSERT_NE(out.abi, nullptr);
    EXPECT_EQ(out.abi->version, row.version);
    EXPECT_EQ(out.ruleset.fs, row.fs);
    EXPECT_EQ(out.ruleset.net, row.net);
    EXPECT_EQ(out.ruleset.scope, row.scope);
    EXPECT_EQ(out.ruleset.paths[0].rights & ~row.fs, 0U);
    std::size_t lost = 0;
    for (const LandlockAbi& later : landlock_abis())
      if (later.version > row.version && later.version != 7) ++lost; // 7 adds no rights
    EXPECT_EQ(out.lost.size(), lost) << row.version;
  }
}

TEST(Landlock, NewerKernelsUseTheNewestRow) {
  EXPECT_EQ(downgrade(everything(), 99).abi->version, landlock_abis().back().version);
  EXPECT_EQ(downgrade(everything(), 0).abi, nullptr);
}

} // namespace
} // namespace nd7::os
