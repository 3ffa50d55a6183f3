#include "adapter_store/resident_cache.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adapter_store/errors.h"
#include "adapter_store/testing/resident_cache_fixture.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::Item;
using store_test::KeyOf;
using store_test::ResidentCacheTest;
using store_test::Result;

TEST_F(ResidentCacheTest, LoadsOnceAndThenHits) {
  Make(100);
  auto first = Ask("a", 40);
  EXPECT_FALSE(first->has_value());
  EXPECT_EQ(CacheStats().loading_bytes, 40u);
  RunTasks();
  ASSERT_TRUE((*first)->ok());
  EXPECT_EQ(*(**first)->front(), "value of a");
  EXPECT_EQ((**first)->front().found_in(), Tier::kDisk);
  auto second = Ask("a", 40);
  ASSERT_TRUE(second->has_value()) << "a hit answers inside the call";
  EXPECT_EQ((**second)->front().found_in(), Tier::kDevice);
  EXPECT_EQ(loads_["a"], 1);
  EXPECT_EQ(CacheStats().lookups, 2u);
  EXPECT_EQ(CacheStats().hits, 1u);
  EXPECT_EQ(CacheStats().loads_ok, 1u);
  EXPECT_EQ(CacheStats().leased_bytes, 40u);
}

TEST_F(ResidentCacheTest, OneLoadServesAllThatWaitForIt) {
  Make(100);
  std::vector<std::shared_ptr<std::optional<Result>>> results;
  results.reserve(10);
  for (int i = 0; i < 10; ++i) results.push_back(Ask("a", 40));
  RunTasks();
  for (const auto& result : results) {
    ASSERT_TRUE(result->has_value());
    EXPECT_TRUE((*result)->ok());
  }
  EXPECT_EQ(loads_["a"], 1);
  EXPECT_EQ(cache_->Stats().used_bytes, 40u);
}

TEST_F(ResidentCacheTest, ExactBudgetFitsAndOneByteLessUnloadsOne) {
  Make(120);
  Visit("a", 40);
  Visit("b", 40);
  Visit("c", 40);
  EXPECT_EQ(CacheStats().resident_items, 3u);
  EXPECT_EQ(CacheStats().unloads_for_room, 0u);
  Visit("d", 40);
  EXPECT_EQ(CacheStats().resident_items, 3u);
  EXPECT_EQ(CacheStats().unloads_for_room, 1u);
  EXPECT_FALSE(cache_->IsResident(KeyOf("a"))) << "the least recently used goes";

  Make(119);
  Visit("a", 40);
  Visit("b", 40);
  Visit("c", 40);
  EXPECT_EQ(CacheStats().resident_items, 2u);
  EXPECT_EQ(CacheStats().unloads_for_room, 1u);
  EXPECT_FALSE(cache_->IsResident(KeyOf("a")));
}

TEST_F(ResidentCacheTest, UseRenewsAnItemsPlace) {
  Make(100);
  Visit("a", 50);
  Visit("b", 50);
  Visit("a", 50);
  Visit("c", 50);
  EXPECT_TRUE(cache_->IsResident(KeyOf("a")));
  EXPECT_FALSE(cache_->IsResident(KeyOf("b")));
}

TEST_F(ResidentCacheTest, UnloadsNothingThatIsNotNeeded) {
  Make(100);
  Visit("small", 10);
  Visit("large", 80);
  Visit("new", 85);
  EXPECT_TRUE(cache_->IsResident(KeyOf("small"))) << "unloading the large one was enough";
  EXPECT_EQ(CacheStats().unloads_for_room, 1u);
}

TEST_F(ResidentCacheTest, UnloadsNothingForARequestThatMustWaitAnyway) {
  Make(100);
  auto leased = Ask("leased", 60);
  RunTasks();
  Visit("idle", 40);
  auto waiting = Ask("large", 70);
  RunTasks();
  EXPECT_FALSE(waiting->has_value());
  EXPECT_TRUE(cache_->IsResident(KeyOf("idle")));
  leased->reset();
  RunTasks();
  ASSERT_TRUE(waiting->has_value());
  EXPECT_TRUE((*waiting)->ok());
  EXPECT_FALSE(cache_->IsResident(KeyOf("leased")));
}

TEST_F(ResidentCacheTest, LeasedItemsSurviveAStorm) {
  Make(100);
  auto leased = Ask("a", 50);
  RunTasks();
  for (char id = 'b'; id <= 'z'; ++id) Visit(std::string(1, id), 50);
  EXPECT_EQ(*(**leased)->front(), "value of a");
  EXPECT_EQ(loads_["a"], 1);
  EXPECT_EQ(CacheStats().leased_bytes, 50u);
}

TEST_F(ResidentCacheTest, PinnedItemsStayAndAreNamedWhenNothingFits) {
  Make(100);
  cache_->SetPinned(KeyOf("a"), true);
  Visit("a", 60);
  EXPECT_EQ(CacheStats().pinned_bytes, 60u);
  auto refused = Ask("b", 50);
  ASSERT_TRUE(refused->has_value()) << "waiting would be for ever";
  const absl::Status status = (*refused)->status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(ReasonOf(status), reason::kDeviceBudgetExceeded);
  const ErrorDetails details = DetailsOf(status);
  EXPECT_EQ(details.at("need_bytes"), "50");
  EXPECT_EQ(details.at("free_bytes"), "40");
  EXPECT_EQ(details.at("pinned_bytes"), "60");
  EXPECT_EQ(details.at("leased_bytes"), "0");
  cache_->SetPinned(KeyOf("a"), false);
  Visit("b", 50);
  EXPECT_FALSE(cache_->IsResident(KeyOf("a")));
}

TEST_F(ResidentCacheTest, LargerThanTheBudgetIsRefusedAtOnce) {
  Make(100);
  auto refused = Ask("a", 101);
  ASSERT_TRUE(refused->has_value());
  EXPECT_TRUE(absl::IsResourceExhausted((*refused)->status()));
  EXPECT_EQ(cache_->Stats().used_bytes, 0u);
}

TEST_F(ResidentCacheTest, FailInsteadOfWaitingWhenAskedTo) {
  Make(100);
  auto leased = Ask("a", 80);
  RunTasks();
  auto refused = Ask("b", 40, WhenFull::kFail);
  ASSERT_TRUE(refused->has_value());
  EXPECT_TRUE(absl::IsResourceExhausted((*refused)->status()));
  EXPECT_EQ(DetailsOf((*refused)->status()).at("leased_bytes"), "80");
}

TEST_F(ResidentCacheTest, PinningAfterwardsFailsWhatCanNeverFit) {
  Make(100);
  auto leased = Ask("a", 80);
  RunTasks();
  auto waiting = Ask("b", 40);
  RunTasks();
  ASSERT_FALSE(waiting->has_value());
  cache_->SetPinned(KeyOf("a"), true);
  RunTasks();
  ASSERT_TRUE(waiting->has_value());
  EXPECT_TRUE(absl::IsResourceExhausted((*waiting)->status()));
}

TEST_F(ResidentCacheTest, FailedLoadFailsItsWaitersAndFreesItsBytes) {
  Make(100);
  std::vector<Item> items;
  items.push_back(ItemOf("good", 30));
  items.push_back({KeyOf("bad"), 30, Tier::kDisk, [] {
                     return absl::StatusOr<std::unique_ptr<const std::string>>(
                         absl::DataLossError("damaged"));
                   }});
  auto pair = Ask(std::move(items));
  auto other = Ask("bad", 30);
  RunTasks();
  ASSERT_TRUE(pair->has_value());
  EXPECT_TRUE(absl::IsDataLoss((*pair)->status()));
  EXPECT_TRUE(absl::IsDataLoss((*other)->status()));
  EXPECT_EQ(cache_->Stats().used_bytes, 30u) << "only the good one is left";
  EXPECT_EQ(CacheStats().loads_failed, 1u);
  EXPECT_EQ(CacheStats().leased_bytes, 0u);
  Visit("bad", 30);
  EXPECT_TRUE(cache_->IsResident(KeyOf("bad"))) << "a failure isn't remembered";
}

TEST_F(ResidentCacheTest, CancelledWaiterEndsAndLetsOthersThrough) {
  Make(100);
  auto leased = Ask("a", 60);
  RunTasks();
  auto large = Ask("large", 90);
  const AcquireId id = last_id_;
  auto small = Ask("small", 40);
  RunTasks();
  cache_->Cancel(id);
  RunTasks();
  ASSERT_TRUE(large->has_value());
  EXPECT_TRUE(absl::IsCancelled((*large)->status()));
  EXPECT_TRUE(small->has_value());
}

TEST_F(ResidentCacheTest, LoadThatNobodyWaitsForIsNotBegun) {
  Make(100);
  auto cancelled = Ask("a", 60);
  cache_->Cancel(last_id_);
  RunTasks();
  EXPECT_TRUE(absl::IsCancelled((*cancelled)->status()));
  EXPECT_EQ(loads_.count("a"), 0u);
  EXPECT_EQ(cache_->Stats().used_bytes, 0u);
}

TEST_F(ResidentCacheTest, CancelAfterTheEndDoesNothing) {
  Make(100);
  auto result = Ask("a", 60);
  const AcquireId id = last_id_;
  RunTasks();
  cache_->Cancel(id);
  RunTasks();
  EXPECT_TRUE((*result)->ok());
}

TEST_F(ResidentCacheTest, ErasedBytesCountUntilTheLastLeaseEnds) {
  Make(100);
  auto leased = Ask("a", 60);
  RunTasks();
  cache_->Erase(KeyOf("a"));
  EXPECT_FALSE(cache_->IsResident(KeyOf("a")));
  EXPECT_EQ(cache_->Stats().used_bytes, 60u);
  EXPECT_EQ(CacheStats().leased_bytes, 60u);
  EXPECT_EQ(*(**leased)->front(), "value of a");
  leased->reset();
  RunTasks();
  EXPECT_EQ(cache_->Stats().used_bytes, 0u);
  EXPECT_EQ(CacheStats().unloads_erased, 1u);
}

TEST_F(ResidentCacheTest, ErasedWhileLoadingIsServedToItsWaitersOnly) {
  Make(200);
  auto old_version = Ask("a", 60);
  cache_->Erase(KeyOf("a"));
  auto new_version = Ask("a", 60);
  RunTasks();
  EXPECT_TRUE((*old_version)->ok());
  EXPECT_TRUE((*new_version)->ok());
  EXPECT_EQ(loads_["a"], 2);
  old_version->reset();
  RunTasks();
  EXPECT_EQ(cache_->Stats().used_bytes, 60u);
  EXPECT_TRUE(cache_->IsResident(KeyOf("a")));
}

TEST_F(ResidentCacheTest, UnloadIdleKeepsLeasedAndPinned) {
  Make(100);
  cache_->SetPinned(KeyOf("pinned"), true);
  Visit("pinned", 20);
  auto leased = Ask("leased", 20);
  Visit("idle", 20);
  cache_->UnloadIdle();
  RunTasks();
  EXPECT_TRUE(cache_->IsResident(KeyOf("pinned")));
  EXPECT_TRUE(cache_->IsResident(KeyOf("leased")));
  EXPECT_FALSE(cache_->IsResident(KeyOf("idle")));
  EXPECT_EQ(CacheStats().unloads_idle, 1u);
}

TEST_F(ResidentCacheTest, KindsAreCountedApartUnderOneBudget) {
  Make(100);
  Visit("a", 40);
  std::vector<Item> items;
  items.push_back(ItemOf("a", 50));
  items[0].key.kind = ResidentKind::kAdapter;
  auto adapter = Ask(std::move(items));
  RunTasks();
  const ResidentStats stats = cache_->Stats();
  EXPECT_EQ(stats.kinds[static_cast<size_t>(ResidentKind::kCache)].resident_bytes, 40u);
  EXPECT_EQ(stats.kinds[static_cast<size_t>(ResidentKind::kAdapter)].resident_bytes, 50u);
  EXPECT_EQ(stats.used_bytes, 90u);
  EXPECT_EQ(cache_->Residents().size(), 2u);
}

TEST_F(ResidentCacheTest, DestructionEndsWaitersAndLeavesLeasesValid) {
  Make(100);
  auto leased = Ask("a", 80);
  RunTasks();
  auto waiting = Ask("b", 80);
  cache_.reset();
  ASSERT_TRUE(waiting->has_value());
  EXPECT_TRUE(absl::IsCancelled((*waiting)->status()));
  EXPECT_EQ(*(**leased)->front(), "value of a");
}

TEST_F(ResidentCacheTest, LeasesMoveAndEndOnce) {
  Make(100);
  auto result = Ask("a", 40);
  RunTasks();
  Lease<std::string> lease = std::move((**result)->front());
  EXPECT_FALSE(static_cast<bool>((**result)->front()));
  Lease<std::string> other = std::move(lease);
  EXPECT_EQ(other.bytes(), 40u);
  EXPECT_EQ(CacheStats().leased_bytes, 40u);
  other = Lease<std::string>();
  EXPECT_EQ(CacheStats().leased_bytes, 0u);
}

TEST_F(ResidentCacheTest, SameItemTwiceIsRefused) {
  Make(100);
  std::vector<Item> items;
  items.push_back(ItemOf("a", 10));
  items.push_back(ItemOf("a", 10));
  auto result = Ask(std::move(items));
  ASSERT_TRUE(result->has_value());
  EXPECT_EQ((*result)->status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace docmem::store
