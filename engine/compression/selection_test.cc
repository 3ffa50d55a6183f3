#include "engine/compression/selection.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace docmem::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int64_t> Row(const std::vector<at::Tensor>& kept, size_t head) {
  const at::Tensor row = kept[head].contiguous();
  return {row.const_data_ptr<int64_t>(), row.const_data_ptr<int64_t>() + row.numel()};
}

TEST(Protect, HeadThenLatestThenTheRestOfTheFirst) {
  const Protection protection = Protect(20, 3, 8, 4);
  EXPECT_THAT(protection.order, ElementsAre(0, 1, 2, 19, 18, 17, 16, 3, 4, 5, 6, 7));
  EXPECT_EQ(protection.first_scored, 8);
  EXPECT_EQ(protection.scored, 8);
}

TEST(Protect, ALongHeadTakesThePlaceOfTheFirst) {
  const Protection protection = Protect(20, 10, 8, 4);
  EXPECT_THAT(protection.order, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 19, 18, 17, 16));
  EXPECT_EQ(protection.first_scored, 10);
  EXPECT_EQ(protection.scored, 6);
}

TEST(Protect, ShortContextsAreProtectedWhole) {
  EXPECT_THAT(Protect(10, 3, 8, 4).order, ElementsAre(0, 1, 2, 9, 8, 7, 6, 3, 4, 5));
  EXPECT_EQ(Protect(10, 3, 8, 4).scored, 0);
  EXPECT_THAT(Protect(5, 3, 8, 4).order, ElementsAre(0, 1, 2, 4, 3));
  EXPECT_THAT(Protect(3, 3, 8, 4).order, ElementsAre(0, 1, 2));
  EXPECT_THAT(Protect(2, 0, 8, 4).order, ElementsAre(1, 0));
  EXPECT_EQ(Protect(12, 0, 8, 4).scored, 0);
  EXPECT_EQ(Protect(13, 0, 8, 4).scored, 1);
}

TEST(SelectPerHead, GivesUpProtectedTokensFromTheEndOfTheirOrder) {
  const Protection protection = Protect(20, 3, 8, 4);
  const at::Tensor none;
  EXPECT_THAT(Row(SelectPerHead(protection, none, 2, 3), 1), ElementsAre(0, 1, 2));
  EXPECT_THAT(Row(SelectPerHead(protection, none, 2, 4), 1), ElementsAre(0, 1, 2, 19));
  EXPECT_THAT(Row(SelectPerHead(protection, none, 2, 8), 0),
              ElementsAre(0, 1, 2, 3, 16, 17, 18, 19));
  EXPECT_THAT(Row(SelectPerHead(Protect(5, 0, 8, 4), none, 1, 0), 0), IsEmpty());
}

TEST(SelectPerHead, TakesTheBestOfEveryHeadAndSortsByPosition) {
  const Protection protection = Protect(9, 1, 2, 1);                         // middle: 2 … 7
  const at::Tensor scores = at::tensor({0.1F, 0.9F, 0.3F, 0.2F, 0.8F, 0.0F,  //
                                        5.0F, -1.0F, -2.0F, -3.0F, -4.0F, 6.0F})
                                .view({2, 6});
  const auto kept = SelectPerHead(protection, scores, 2, 5);
  EXPECT_THAT(Row(kept, 0), ElementsAre(0, 1, 3, 6, 8));
  EXPECT_THAT(Row(kept, 1), ElementsAre(0, 1, 2, 7, 8));
}

TEST(SelectPerHead, OfEqualScoresTheLowerPositionStays) {
  const Protection protection = Protect(300, 0, 0, 0);
  const auto kept = SelectPerHead(protection, at::ones({1, 300}), 1, 100);
  EXPECT_TRUE(at::equal(kept[0], at::arange(100)));
}

TEST(SelectPerHead, KeepsEverythingWhenNothingIsEvicted) {
  const auto kept = SelectPerHead(Protect(30, 2, 8, 4), at::randn({2, 18}), 2, 30);
  EXPECT_TRUE(at::equal(at::stack(kept), at::arange(30).expand({2, 30})));
}

TEST(SelectOverHeads, TheBestOfAllHeadsStayAndProtectedTokensInEveryOne) {
  const Protection protection = Protect(9, 1, 2, 1);                         // middle: 2 … 7
  const at::Tensor scores = at::tensor({0.1F, 0.9F, 0.3F, 0.2F, 0.8F, 0.7F,  //
                                        5.0F, -1.0F, -2.0F, -3.0F, -4.0F, 0.4F})
                                .view({2, 6});
  const auto kept = SelectOverHeads(protection, scores, 2, 5);
  EXPECT_THAT(Row(kept, 0), ElementsAre(0, 1, 3, 6, 7, 8));
  EXPECT_THAT(Row(kept, 1), ElementsAre(0, 1, 2, 8));
}

TEST(SelectOverHeads, OfEqualScoresTheLowerPositionThenTheLowerHeadStays) {
  const auto kept = SelectOverHeads(Protect(300, 0, 0, 0), at::ones({3, 300}), 3, 100);
  for (size_t head = 0; head < 3; ++head) EXPECT_TRUE(at::equal(kept[head], at::arange(100)));
  const auto odd = SelectOverHeads(Protect(300, 1, 0, 0), at::ones({2, 299}), 2, 2);
  EXPECT_THAT(Row(odd, 0), ElementsAre(0, 1));
  EXPECT_THAT(Row(odd, 1), ElementsAre(0, 1));
}

TEST(SelectOverHeads, AHeadMayKeepNothing) {
  const at::Tensor scores = at::tensor({1.0F, 2.0F, 3.0F, -1.0F, -2.0F, -3.0F}).view({2, 3});
  const auto kept = SelectOverHeads(Protect(3, 0, 0, 0), scores, 2, 1);
  EXPECT_THAT(Row(kept, 0), ElementsAre(1, 2));
  EXPECT_THAT(Row(kept, 1), IsEmpty());
}

TEST(SelectOverHeads, WithoutScoresAllHeadsKeepTheSame) {
  const Protection protection = Protect(100, 3, 16, 64);
  const auto kept = SelectOverHeads(protection, {}, 2, 5);
  EXPECT_THAT(Row(kept, 0), ElementsAre(0, 1, 2, 98, 99));
  EXPECT_TRUE(at::equal(kept[0], kept[1]));
}

}  // namespace
}  // namespace docmem::engine
