#include "server/runtime/memories.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "adapter_store/errors.h"
#include "server/runtime/test_event.h"
#include "server/runtime/testing.h"

namespace docmem::server {
namespace {

absl::StatusOr<LeasedMemories> AcquireNow(TestParts& parts, const store::Document& document,
                                          const store::Adapter* adapter) {
  absl::StatusOr<LeasedMemories> result = absl::UnknownError("nothing came");
  TestEvent done;
  parts.memories.Acquire(document.key, document.caches.front(), adapter, store::WhenFull::kWait,
                         [&](absl::StatusOr<LeasedMemories> memories) {
                           result = std::move(memories);
                           done.Notify();
                         });
  done.Wait();
  return result;
}

// Flips one byte in the middle of the largest artifact.
void DamageLargestFile(const std::string& folder) {
  std::filesystem::path largest;
  uintmax_t bytes = 0;
  const std::filesystem::path artifacts = std::filesystem::path(folder) / "artifacts";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(artifacts)) {
    if (!entry.is_regular_file()) continue;
    if (entry.file_size() > bytes) {
      bytes = entry.file_size();
      largest = entry.path();
    }
  }
  std::filesystem::permissions(largest, std::filesystem::perms::owner_all);
  std::fstream file(largest, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(bytes / 2));
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(static_cast<std::streamoff>(bytes / 2));
  file.put(byte);
}

TEST(MemoriesTest, AFirstLeaseComesFromDiskAndTheNextFromTheDevice) {
  TestParts parts;
  const store::Document document = parts.Publish("d", {500'000});
  EXPECT_FALSE(parts.memories.IsLoaded(document.key, document.caches.front()));
  const auto first = AcquireNow(parts, document, nullptr);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->cache_tier, store::Tier::kDisk);
  EXPECT_EQ(first->cache->identity().Digest(), document.caches.front().spec.id);
  const auto second = AcquireNow(parts, document, nullptr);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->cache_tier, store::Tier::kDevice);
  EXPECT_EQ(second->cache.get(), first->cache.get());
}

TEST(MemoriesTest, CacheAndAdapterAreLeasedTogetherAndNamedAmongTheResidents) {
  TestParts parts;
  const store::Document document = parts.Publish("d", {500'000});
  const store::Adapter adapter = parts.PublishAdapter(document.key, "all-modules");
  const auto memories = AcquireNow(parts, document, &adapter);
  ASSERT_TRUE(memories.ok()) << memories.status();
  EXPECT_EQ(memories->adapter->content_hash(), adapter.spec.hash);
  const std::vector<ResidentMemory> residents = parts.memories.Residents();
  ASSERT_EQ(residents.size(), 2U);
  for (const ResidentMemory& resident : residents) {
    EXPECT_EQ(resident.document, document.key);
    EXPECT_EQ(resident.resident.leases, 1U);
    const bool is_cache = resident.resident.key.kind == store::ResidentKind::kCache;
    EXPECT_EQ(resident.id, is_cache ? document.caches.front().spec.id : adapter.spec.hash);
  }
}

TEST(MemoriesTest, AnAdapterIsLeasedAloneAndSharedWithQuestions) {
  TestParts parts;
  const store::Document document = parts.Publish("d", {500'000});
  const store::Adapter adapter = parts.PublishAdapter(document.key, "all-modules");
  std::shared_ptr<const engine::Adapter> alone;
  TestEvent done;
  parts.memories.AcquireAdapter(adapter, store::WhenFull::kWait,
                                [&](absl::StatusOr<std::shared_ptr<const engine::Adapter>> leased) {
                                  EXPECT_TRUE(leased.ok()) << leased.status();
                                  if (leased.ok()) alone = *std::move(leased);
                                  done.Notify();
                                });
  done.Wait();
  ASSERT_NE(alone, nullptr);
  EXPECT_EQ(alone->content_hash(), adapter.spec.hash);
  ASSERT_EQ(parts.memories.Residents().size(), 1U);
  EXPECT_EQ(parts.memories.Residents().front().resident.leases, 1U);
  const auto memories = AcquireNow(parts, document, &adapter);
  ASSERT_TRUE(memories.ok()) << memories.status();
  EXPECT_EQ(memories->adapter.get(), alone.get());
}

TEST(MemoriesTest, ADamagedFileIsQuarantinedAndOthersAreServed) {
  TestParts parts;
  const store::Document damaged = parts.Publish("damaged", {0});
  DamageLargestFile(parts.folder);
  const store::Document whole = parts.Publish("whole", {900'000});
  const auto refused = AcquireNow(parts, damaged, nullptr);
  EXPECT_TRUE(absl::IsDataLoss(refused.status())) << refused.status();
  const auto document = parts.store->GetDocument(damaged.key);
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_TRUE(document->caches.front().file.quarantined);
  EXPECT_TRUE(AcquireNow(parts, whole, nullptr).ok());
}

TEST(MemoriesTest, ForgottenDocumentsGiveTheirBytesBackWithTheLastLease) {
  TestParts parts;
  const store::Document document = parts.Publish("d", {500'000});
  auto memories = AcquireNow(parts, document, nullptr);
  ASSERT_TRUE(memories.ok()) << memories.status();
  parts.memories.ForgetDocument(document.key);
  EXPECT_FALSE(parts.memories.IsLoaded(document.key, document.caches.front()));
  EXPECT_GT(parts.memories.Stats().used_bytes, 0U);
  memories->cache.reset();
  parts.StopThreads();  // the loader may still be on its way out, holding the value
  EXPECT_EQ(parts.memories.Stats().used_bytes, 0U);
}

TEST(MemoriesTest, PinsFollowTheDocumentsRow) {
  TestParts parts;
  store::Document document = parts.Publish("d", {500'000});
  document.spec.pinned = true;
  parts.memories.SetPins(document, nullptr);
  ASSERT_TRUE(AcquireNow(parts, document, nullptr).ok());
  ASSERT_EQ(parts.memories.Residents().size(), 1U);
  EXPECT_TRUE(parts.memories.Residents().front().resident.pinned);
  document.spec.pinned = false;
  parts.memories.SetPins(document, nullptr);
  EXPECT_FALSE(parts.memories.Residents().front().resident.pinned);
}

TEST(MemoriesTest, APinnedMemoryStaysWhileItsPinsAreSetAnewAndOthersWait) {
  TestParts parts({.device_budget_bytes = 5 << 20});
  store::Document pinned = parts.Publish("p", {0});
  const store::Document asked = parts.Publish("a", {0});
  const store::Document waiting = parts.Publish("w", {0});
  const uint64_t bytes = pinned.caches.front().spec.device_bytes;
  ASSERT_TRUE(2 * bytes <= 5 << 20 && 3 * bytes > 5 << 20) << bytes << ": room for two of three";
  pinned.spec.pinned = true;
  parts.memories.SetPins(pinned, nullptr);
  ASSERT_TRUE(AcquireNow(parts, pinned, nullptr).ok());
  auto lease = AcquireNow(parts, asked, nullptr);
  ASSERT_TRUE(lease.ok()) << lease.status();
  TestEvent done;
  parts.memories.Acquire(waiting.key, waiting.caches.front(), nullptr, store::WhenFull::kWait,
                         [&](absl::StatusOr<LeasedMemories> memories) {
                           EXPECT_TRUE(memories.ok()) << memories.status();
                           done.Notify();
                         });
  parts.memories.SetPins(pinned, nullptr);
  EXPECT_TRUE(parts.memories.IsLoaded(pinned.key, pinned.caches.front()));
  lease = absl::CancelledError("the lease is given back");
  done.Wait();
  EXPECT_TRUE(parts.memories.IsLoaded(pinned.key, pinned.caches.front()));
  EXPECT_FALSE(parts.memories.IsLoaded(asked.key, asked.caches.front()));
}

TEST(MemoriesTest, AFileOverTheBudgetIsRefusedWithTheNumbers) {
  TestParts parts({.device_budget_bytes = 1000});
  const store::Document document = parts.Publish("d", {0});
  const auto refused = AcquireNow(parts, document, nullptr);
  ASSERT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  const store::ErrorDetails details = store::DetailsOf(refused.status());
  EXPECT_EQ(details.count("need_bytes"), 1U);
  EXPECT_EQ(details.count("pinned_bytes"), 1U);
}

TEST(MemoriesTest, WhatTheDeviceUnloadedComesBackFromTheHostTier) {
  TestParts parts({.device_budget_bytes = 3 << 20, .host_budget_bytes = 64 << 20});
  const store::Document first = parts.Publish("first", {0});
  const store::Document second = parts.Publish("second", {0});
  const uint64_t bytes = first.caches.front().spec.device_bytes;
  ASSERT_TRUE(bytes <= 3 << 20 && 2 * bytes > 3 << 20) << bytes << ": room for one of two";
  ASSERT_TRUE(AcquireNow(parts, first, nullptr).ok());
  ASSERT_TRUE(AcquireNow(parts, second, nullptr).ok());
  EXPECT_FALSE(parts.memories.IsLoaded(first.key, first.caches.front()));
  const auto again = AcquireNow(parts, first, nullptr);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->cache_tier, store::Tier::kHost);
  const store::ResidentStats host = *parts.memories.HostStats();
  EXPECT_EQ(host.kinds[0].resident_items, 2U);
  EXPECT_EQ(host.kinds[0].loads_ok, 2U);
  parts.memories.ForgetDocument(second.key);
  parts.StopThreads();  // the loader may still be on its way out, holding the value
  EXPECT_EQ(parts.memories.HostStats()->kinds[0].resident_items, 1U);
}

TEST(MemoriesTest, WhatTheHostTierHasNoRoomForIsReadPastIt) {
  TestParts parts({.device_budget_bytes = 64 << 20, .host_budget_bytes = 1});
  const store::Document document = parts.Publish("d", {500'000});
  ASSERT_TRUE(AcquireNow(parts, document, nullptr).ok());
  EXPECT_EQ(parts.memories.HostStats()->used_bytes, 0U);
}

TEST(MemoriesTest, PrefetchLoadsAndGivesTheLeaseBack) {
  TestParts parts;
  const store::Document document = parts.Publish("d", {500'000});
  TestEvent done;
  absl::Status status;
  parts.memories.Prefetch(document.key, document.caches.front(), nullptr,
                          [&](const absl::Status& end) {
                            status = end;
                            done.Notify();
                          });
  done.Wait();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(parts.memories.IsLoaded(document.key, document.caches.front()));
  EXPECT_EQ(parts.memories.Residents().front().resident.leases, 0U);
}

}  // namespace
}  // namespace docmem::server
