#include <atomic>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "adapter_store/resident_cache.h"
#include "adapter_store/sync.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

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
    cache.Acquire(std::move(items), WhenFull::kFail,
                  [](const auto& leases) { ASSERT_TRUE(leases.ok()); });
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
        const AcquireId id =
            cache.Acquire(std::move(items), random() % 4 == 0 ? WhenFull::kFail : WhenFull::kWait,
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
    threads.reserve(kThreads);
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
