#include "adapter_store/resident_cache.h"

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "adapter_store/errors.h"
#include "adapter_store/sync.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using Cache = ResidentCache<std::string>;
using Item = ResidentItem<std::string>;
using Result = absl::StatusOr<Cache::Leases>;

ResidentKey KeyOf(const std::string& id) { return {ResidentKind::kCache, id}; }

// Tasks run when the test says so.
class ResidentCacheTest : public ::testing::Test {
 protected:
  Cache& Make(uint64_t budget) {
    Cache::Options options;
    options.budget_bytes = budget;
    options.executor = [this](absl::AnyInvocable<void()> task) {
      tasks_.push_back(std::move(task));
    };
    options.clock = [this] { return now_; };
    cache_ = std::make_unique<Cache>(std::move(options));
    return *cache_;
  }

  Item ItemOf(const std::string& id, uint64_t bytes) {
    return {KeyOf(id), bytes, Tier::kDisk, [this, id] {
              ++loads_[id];
              return std::make_unique<const std::string>("value of " + id);
            }};
  }

  void RunTasks() {
    while (!tasks_.empty()) RunOne();
  }

  void RunOne() {
    absl::AnyInvocable<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    task();
  }

  // Where the result of a request will be.
  std::shared_ptr<std::optional<Result>> Ask(std::vector<Item> items,
                                             WhenFull when_full = WhenFull::kWait) {
    auto slot = std::make_shared<std::optional<Result>>();
    last_id_ = cache_->Acquire(std::move(items), when_full, [slot](Result result) {
      EXPECT_FALSE(slot->has_value()) << "called twice";
      *slot = std::move(result);
    });
    return slot;
  }

  std::shared_ptr<std::optional<Result>> Ask(const std::string& id, uint64_t bytes,
                                             WhenFull when_full = WhenFull::kWait) {
    std::vector<Item> items;
    items.push_back(ItemOf(id, bytes));
    return Ask(std::move(items), when_full);
  }

  // Loads and lets go.
  void Visit(const std::string& id, uint64_t bytes) {
    auto result = Ask(id, bytes);
    RunTasks();
    ASSERT_TRUE(result->has_value());
    ASSERT_TRUE((*result)->ok()) << (*result)->status();
    result->reset();
    RunTasks();
  }

  ResidentKindStats CacheStats() {
    return cache_->Stats().kinds[static_cast<size_t>(ResidentKind::kCache)];
  }

  std::deque<absl::AnyInvocable<void()>> tasks_;
  absl::Time now_ = absl::UnixEpoch();
  std::map<std::string, int> loads_;
  std::unique_ptr<Cache> cache_;
  AcquireId last_id_ = 0;
};

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

TEST_F(ResidentCacheTest, RequestsThatNeedBytesKeepTheirOrder) {
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

TEST_F(ResidentCacheTest, HitsOvertakeUntilPatienceEnds) {
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

TEST_F(ResidentCacheTest, AWaitingRequestJoinsALoadThatAnotherBegan) {
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

TEST_F(ResidentCacheTest, SeveralItemsAreAdmittedTogetherOrNotAtAll) {
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

TEST_F(ResidentCacheTest, RequestDoesNotUnloadItsOwnItems) {
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

// A pool of threads with one queue.
class Pool {
 public:
  explicit Pool(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
  }
  ~Pool() {
    {
      MutexLock lock(&mutex_);
      stop_ = true;
      more_.SignalAll();
    }
    for (std::thread& thread : threads_) thread.join();
  }
  void Run(absl::AnyInvocable<void()> task) {
    MutexLock lock(&mutex_);
    tasks_.push_back(std::move(task));
    more_.Signal();
  }
  // Returns when there is nothing left to do.
  void Drain() {
    MutexLock lock(&mutex_);
    while (!tasks_.empty() || busy_ > 0) idle_.Wait(&mutex_);
  }

 private:
  void Work() {
    for (;;) {
      absl::AnyInvocable<void()> task;
      {
        MutexLock lock(&mutex_);
        while (tasks_.empty() && !stop_) more_.Wait(&mutex_);
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
        ++busy_;
      }
      task();
      task = nullptr;
      MutexLock lock(&mutex_);
      if (--busy_ == 0) idle_.SignalAll();
    }
  }

  Mutex mutex_;
  CondVar more_;
  CondVar idle_;
  int busy_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<absl::AnyInvocable<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

// A value that knows how many of its bytes are alive at once.
class Block {
 public:
  Block(std::atomic<int64_t>* alive, int64_t bytes) : alive_(alive), bytes_(bytes) {
    *alive_ += bytes_;
  }
  ~Block() { *alive_ -= bytes_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::atomic<int64_t>* const alive_;
  const int64_t bytes_;
};

TEST(ResidentCacheMemoryTest, MemoryIsGivenBackBeforeTheNextLoadBegins) {
  std::deque<absl::AnyInvocable<void()>> tasks;
  ResidentCache<Block>::Options options;
  options.budget_bytes = 100;
  options.executor = [&](absl::AnyInvocable<void()> task) { tasks.push_back(std::move(task)); };
  ResidentCache<Block> cache(std::move(options));
  std::atomic<int64_t> alive = 0;
  int64_t alive_at_second_load = -1;
  for (const std::string id : {"a", "b"}) {
    ResidentItem<Block> item;
    item.key.id = id;
    item.bytes = 80;
    item.loader = [&] {
      alive_at_second_load = alive;
      return std::make_unique<const Block>(&alive, 80);
    };
    std::vector<ResidentItem<Block>> items;
    items.push_back(std::move(item));
    cache.Acquire(std::move(items), WhenFull::kFail, [](auto leases) { ASSERT_TRUE(leases.ok()); });
    while (!tasks.empty()) {
      absl::AnyInvocable<void()> task = std::move(tasks.front());
      tasks.pop_front();
      task();
    }
  }
  EXPECT_EQ(alive_at_second_load, 0);
  EXPECT_EQ(alive, 80);
}

TEST(ResidentCacheConcurrencyTest, BudgetHoldsAndEveryRequestEndsOnce) {
  constexpr int kThreads = 4;
  constexpr int kRequests = 1500;
  constexpr int64_t kBudget = 1000;
  std::atomic<int64_t> alive = 0;
  std::atomic<int64_t> most = 0;
  std::atomic<int> ended = 0;
  std::atomic<int> wrong = 0;
  {
    Pool pool(3);
    ResidentCache<Block>::Options options;
    options.budget_bytes = kBudget;
    options.executor = [&pool](absl::AnyInvocable<void()> task) { pool.Run(std::move(task)); };
    options.patience = absl::Milliseconds(1);
    ResidentCache<Block> cache(std::move(options));
    const auto client = [&](int seed) {
      std::minstd_rand random(static_cast<unsigned>(seed));
      for (int i = 0; i < kRequests; ++i) {
        std::vector<ResidentItem<Block>> items;
        const int first = static_cast<int>(random() % 12);
        for (const int id : {first, first + 12}) {
          const int64_t bytes = 50 + 20 * (id % 12);
          const bool fails = random() % 50 == 0;
          ResidentItem<Block> item;
          item.key.id = std::to_string(id);
          item.bytes = static_cast<uint64_t>(bytes);
          item.loader = [&, bytes, fails]() -> absl::StatusOr<std::unique_ptr<const Block>> {
            if (fails) return absl::DataLossError("injected");
            auto block = std::make_unique<const Block>(&alive, bytes);
            int64_t seen = most;
            while (seen < alive && !most.compare_exchange_weak(seen, alive)) {
            }
            return block;
          };
          items.push_back(std::move(item));
        }
        const AcquireId id = cache.Acquire(
            std::move(items), random() % 4 == 0 ? WhenFull::kFail : WhenFull::kWait,
            [&, first](absl::StatusOr<ResidentCache<Block>::Leases> leases) {
              ++ended;
              if (leases.ok() && (*leases)[0]->bytes() != 50 + 20 * first) ++wrong;
            });
        if (random() % 8 == 0) cache.Cancel(id);
        if (random() % 64 == 0) cache.Erase({ResidentKind::kCache, std::to_string(first)});
        if (random() % 64 == 0) {
          cache.SetPinned({ResidentKind::kCache, "1"}, random() % 2 == 0);
        }
        if (random() % 32 == 0 && cache.Stats().used_bytes > kBudget) ++wrong;
      }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(client, i + 1);
    for (std::thread& thread : threads) thread.join();
    pool.Drain();
    EXPECT_EQ(ended, kThreads * kRequests);
    EXPECT_EQ(wrong, 0);
    EXPECT_LE(most, kBudget);
    uint64_t bytes = 0;
    for (const Resident& resident : cache.Residents()) bytes += resident.bytes;
    EXPECT_EQ(cache.Stats().used_bytes, bytes) << "no byte is lost or counted twice";
  }
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(ended, kThreads * kRequests);
}

}  // namespace
}  // namespace docmem::store
