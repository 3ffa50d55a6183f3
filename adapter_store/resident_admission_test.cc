#include <string>
#include <utility>
#include <vector>

#include "adapter_store/testing/resident_cache_fixture.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::Item;
using store_test::KeyOf;
using ResidentAdmissionTest = store_test::ResidentCacheTest;

TEST_F(ResidentAdmissionTest, RequestsThatNeedBytesKeepTheirOrder) {
  Make(100);
  auto leased = Ask("a", 60);
  RunTasks();
  auto large = Ask("large", 90);
  auto small = Ask("small", 10);
  RunTasks();
  EXPECT_FALSE(small->has_value()) << "a small one doesn't overtake";
  leased->reset();
  RunTasks();
  EXPECT_TRUE(large->has_value());
  EXPECT_TRUE(small->has_value());
}

TEST_F(ResidentAdmissionTest, HitsOvertakeUntilPatienceEnds) {
  Make(100);
  auto leased = Ask("a", 60);
  RunTasks();
  auto waiting = Ask("b", 60);
  RunTasks();
  now_ += absl::Milliseconds(999);
  auto hit = Ask("a", 60);
  EXPECT_TRUE(hit->has_value());
  now_ += absl::Milliseconds(1);
  auto late = Ask("a", 60);
  RunTasks();
  EXPECT_FALSE(late->has_value()) << "else the waiting one could starve";
  leased->reset();
  hit->reset();
  RunTasks();
  ASSERT_TRUE(waiting->has_value());
  EXPECT_FALSE(late->has_value());
  waiting->reset();
  RunTasks();
  ASSERT_TRUE(late->has_value());
  EXPECT_EQ(loads_["a"], 2);
}

TEST_F(ResidentAdmissionTest, WhatIsPinnedIsLeasedAlsoWhenPatienceHasEnded) {
  Make(100);
  cache_->SetPinned(KeyOf("pinned"), true);
  Visit("pinned", 40);
  auto leased = Ask("a", 60);
  RunTasks();
  auto waiting = Ask("b", 60);
  now_ += absl::Hours(1);
  auto hit = Ask("pinned", 40);
  EXPECT_TRUE(hit->has_value()) << "it is in nobody's way";
  std::vector<Item> items;
  items.push_back(ItemOf("pinned", 40));
  items.push_back(ItemOf("a", 60));
  auto half_pinned = Ask(std::move(items));
  RunTasks();
  EXPECT_FALSE(half_pinned->has_value());
  leased->reset();
  RunTasks();
  EXPECT_TRUE(waiting->has_value());
}

TEST_F(ResidentAdmissionTest, AWaitingRequestJoinsALoadThatAnotherBegan) {
  Make(100);
  auto leased = Ask("a", 100);
  RunTasks();
  auto first = Ask("b", 60);
  auto second = Ask("c", 60);
  auto third = Ask("b", 60);
  leased->reset();
  RunTasks();
  EXPECT_TRUE(first->has_value());
  EXPECT_FALSE(second->has_value());
  EXPECT_TRUE(third->has_value());
  EXPECT_EQ(loads_["b"], 1);
}

TEST_F(ResidentAdmissionTest, SeveralItemsAreAdmittedTogetherOrNotAtAll) {
  Make(100);
  auto leased = Ask("x", 50);
  RunTasks();
  std::vector<Item> items;
  items.push_back(ItemOf("cache", 40));
  items.push_back(ItemOf("adapter", 20));
  auto pair = Ask(std::move(items));
  RunTasks();
  EXPECT_FALSE(pair->has_value());
  EXPECT_EQ(cache_->Stats().used_bytes, 50u) << "nothing is held while waiting";
  leased->reset();
  RunTasks();
  ASSERT_TRUE(pair->has_value());
  ASSERT_EQ((**pair)->size(), 2u);
  EXPECT_EQ(*(***pair)[0], "value of cache");
  EXPECT_EQ(*(***pair)[1], "value of adapter");
}

TEST_F(ResidentAdmissionTest, RequestDoesNotUnloadItsOwnItems) {
  Make(100);
  Visit("cache", 60);
  Visit("other", 40);
  std::vector<Item> items;
  items.push_back(ItemOf("cache", 60));
  items.push_back(ItemOf("adapter", 40));
  auto pair = Ask(std::move(items));
  RunTasks();
  ASSERT_TRUE(pair->has_value());
  EXPECT_EQ(loads_["cache"], 1);
  EXPECT_FALSE(cache_->IsResident(KeyOf("other")));
}

TEST_F(ResidentAdmissionTest, PinsSetAnewKeepWhatStaysPinnedFromThoseThatWait) {
  Make(100);
  cache_->SetPinned(KeyOf("a"), true);
  Visit("a", 40);
  auto leased = Ask("b", 40);
  auto waiting = Ask("c", 50);
  RunTasks();
  cache_->Repin({KeyOf("a")}, {KeyOf("a")});
  RunTasks();
  EXPECT_TRUE(cache_->IsResident(KeyOf("a")));
  EXPECT_FALSE(waiting->has_value());
}

TEST_F(ResidentAdmissionTest, PinsThatMoveRefuseNobodyForBothTogether) {
  Make(100);
  cache_->SetPinned(KeyOf("a"), true);
  Visit("a", 40);
  auto leased = Ask("b", 40);
  auto waiting = Ask("c", 50);
  RunTasks();
  cache_->Repin({KeyOf("a")}, {KeyOf("b")});
  RunTasks();
  ASSERT_TRUE(waiting->has_value());
  EXPECT_TRUE((*waiting)->ok()) << (*waiting)->status();
  EXPECT_FALSE(cache_->IsResident(KeyOf("a")));
}

}  // namespace
}  // namespace docmem::store
