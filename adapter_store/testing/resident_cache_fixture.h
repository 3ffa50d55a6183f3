#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapter_store/resident_cache.h"
#include "gtest/gtest.h"

namespace docmem::store::store_test {

using Cache = ResidentCache<std::string>;
using Item = ResidentItem<std::string>;
using Result = absl::StatusOr<Cache::Leases>;

inline ResidentKey KeyOf(const std::string& id) { return {ResidentKind::kCache, id}; }

/// Tasks run when the test says so.
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

}  // namespace docmem::store::store_test
