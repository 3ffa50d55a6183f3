#include "training/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace docmem::training {
namespace {

TEST(ShuffledTest, IsAPermutationThatDependsOnSeedAndStream) {
  const auto order = Shuffled(100, 7, 1);
  EXPECT_EQ(std::set<size_t>(order.begin(), order.end()).size(), 100U);
  EXPECT_EQ(*std::ranges::max_element(order), 99U);
  EXPECT_EQ(order, Shuffled(100, 7, 1));
  EXPECT_NE(order, Shuffled(100, 7, 2));
  EXPECT_NE(order, Shuffled(100, 8, 1));
}

TEST(ShuffledTest, HoldsForNoneAndOne) {
  EXPECT_TRUE(Shuffled(0, 1, 1).empty());
  EXPECT_EQ(Shuffled(1, 1, 1), std::vector<size_t>{0});
}

TEST(ShuffledTest, PutsEveryElementEverywhere) {
  std::set<size_t> first;
  for (uint32_t stream = 0; stream < 100; ++stream) first.insert(Shuffled(5, 3, stream)[0]);
  EXPECT_EQ(first.size(), 5U);
}

TEST(DerivedSeedTest, DiffersInEveryArgument) {
  const std::set<uint64_t> seeds = {DerivedSeed(1, 1, 1, 1), DerivedSeed(2, 1, 1, 1),
                                    DerivedSeed(1, 2, 1, 1), DerivedSeed(1, 1, 2, 1),
                                    DerivedSeed(1, 1, 1, 2)};
  EXPECT_EQ(seeds.size(), 5U);
}

}  // namespace
}  // namespace docmem::training
