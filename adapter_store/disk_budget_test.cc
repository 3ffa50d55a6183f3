#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>

#include "adapter_store/testing/adapter_store_fixture.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::AdapterOf;
using store_test::AdapterStoreTest;
using store_test::CacheOf;
using store_test::Hash;
using store_test::Ingest;
using store_test::Key;
using store_test::ReadAll;
using store_test::SpecOf;

using DiskBudgetTest = AdapterStoreTest;

TEST_F(DiskBudgetTest, DiskBudgetIsReservedBeforeWritingAndDeletionAlwaysWorks) {
  budget_ = 1000;
  Open();
  ASSERT_OK(Ingest(*store_, Key("a"), "text", 1));
  const uint64_t used = Used();
  bool written = false;
  NewCache cache = CacheOf(2, "");
  cache.file.max_bytes = 1000 - used + 1;
  cache.file.producer = [&](ArtifactWriter&) {
    written = true;
    return absl::OkStatus();
  };
  const std::string sha = SpecOf("text").text_sha256;
  const absl::Status full = store_->PublishCaches(Key("a"), sha, {cache}).status();
  EXPECT_EQ(ReasonOf(full), reason::kDiskBudgetExceeded);
  EXPECT_FALSE(written);
  ASSERT_OK(store_->PublishCaches(Key("a"), sha, {CacheOf(3, std::string(1000 - used, 'x'))}));
  EXPECT_EQ(Used(), 1000u);
  EXPECT_OK(store_->DeleteCache(Key("a"), Hash(3)));
  EXPECT_OK(store_->DeleteDocument(Key("a"), 0));
  EXPECT_EQ(Used(), 0u);
}

TEST_F(DiskBudgetTest, ParallelWritersNeverExceedTheBudget) {
  budget_ = 2000;
  Open();
  std::atomic<uint64_t> most = 0;
  std::atomic<bool> done = false;
  std::thread watcher([&] {
    while (!done) most = std::max<uint64_t>(most, OnDisk());
  });
  std::vector<std::thread> writers;
  writers.reserve(4);
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([&, i] {
      for (int round = 0; round < 10; ++round) {
        const DocumentKey key = Key(absl::StrFormat("d%d", i));
        const auto begun = store_->BeginDocument(key, SpecOf("text"), 0);
        ASSERT_OK(begun);
        DocumentPublication publication;
        publication.key = key;
        publication.row = begun->row;
        publication.spec = SpecOf("text");
        publication.caches.push_back(CacheOf(1, std::string(900, 'x')));
        const absl::Status status = store_->PublishDocument(publication).status();
        if (!status.ok()) {
          EXPECT_EQ(ReasonOf(status), reason::kDiskBudgetExceeded) << status;
        }
        ASSERT_OK(store_->DeleteDocument(key, 0));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  done = true;
  watcher.join();
  EXPECT_LE(most, 2000u);
  EXPECT_EQ(Used(), 0u);
  EXPECT_EQ(OnDisk(), 0u);
}

TEST_F(DiskBudgetTest, OldOrphansAreCollectedAndCountedYoungOnesStay) {
  ASSERT_OK(Ingest(*store_, Key("a"), "text", 1));
  const uint64_t used = Used();
  store_.reset();
  std::ofstream(folder_.path() + "/artifacts/3f/00000000000000ff.cache") << "orphan";
  std::ofstream(folder_.path() + "/temporary/00000000000001ff.adapter") << "temporary";
  now_ = absl::Now() + absl::Minutes(59);
  Open();
  EXPECT_EQ(store_->Stats()->orphans_collected, 0u) << "another replica may be publishing";
  EXPECT_EQ(Used(), OnDisk());
  now_ = absl::Now() + absl::Minutes(61);
  ASSERT_OK(store_->CollectGarbage());
  EXPECT_EQ(store_->Stats()->orphans_collected, 2u);
  EXPECT_EQ(store_->Stats()->orphan_bytes_collected, 15u);
  EXPECT_EQ(Used(), used);
  EXPECT_EQ(OnDisk(), used);
  EXPECT_OK(ReadAll(*store_, store_->GetDocument(Key("a"))->caches[0].file));
}

TEST_F(DiskBudgetTest, PublicationOfAnotherInstanceIsLeftAloneUntilItExpires) {
  store_.reset();
  Sql("INSERT INTO intents VALUES (50, 1, 'another', 1, " +
      std::to_string(absl::ToUnixMicros(now_ + absl::Hours(1))) + ")");
  Sql("INSERT INTO intent_files VALUES (511, 50, 2)");
  std::ofstream(folder_.path() + "/temporary/00000000000001ff.cache") << "being written";
  now_ = absl::Now() + absl::Minutes(59);
  Open();
  EXPECT_EQ(OnDisk(), 13u);
  now_ = absl::Now() + absl::Hours(3);
  ASSERT_OK(store_->CollectGarbage());
  EXPECT_EQ(OnDisk(), 0u);
}

TEST_F(DiskBudgetTest, FiveHundredDocumentsAreAllThereAfterRestart) {
  for (int i = 0; i < 500; ++i) {
    ASSERT_OK(Ingest(*store_, Key(absl::StrFormat("d%03d", i)), absl::StrFormat("t%d", i), 1));
  }
  const uint64_t used = Used();
  Open();
  const StoreStats stats = *store_->Stats();
  EXPECT_EQ(stats.documents, 500u);
  EXPECT_EQ(stats.cache.items, 500u);
  EXPECT_EQ(stats.used_bytes, used);
  EXPECT_EQ(stats.cache.bytes + stats.text.bytes, used);
  EXPECT_EQ(used, OnDisk());
  uint64_t listed = 0;
  uint64_t bytes = 0;
  PageRequest page;
  do {
    const auto result = store_->ListDocuments("default", {}, page);
    ASSERT_OK(result);
    listed += result->items.size();
    for (const Document& document : result->items) bytes += document.stored_bytes;
    page.token = result->next_token;
  } while (!page.token.empty());
  EXPECT_EQ(listed, 500u);
  EXPECT_EQ(bytes, used);
}

TEST_F(DiskBudgetTest, ConcurrentCallsOnTheSameDocumentKeepItWhole) {
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 15; ++i) {
        Ingest(*store_, Key("a"), "text", 1).status().IgnoreError();
        store_->PublishAdapter(AdapterOf(Key("a"), thread, "w")).status().IgnoreError();
        const auto document = store_->GetDocument(Key("a"));
        if (document.ok() && document->state == DocumentState::kReady) {
          const absl::Status read = ReadAll(*store_, document->caches[0].file).status();
          EXPECT_TRUE(read.ok() || absl::IsNotFound(read)) << read;
        }
        if (i % 3 == thread % 3) store_->DeleteDocument(Key("a"), 0).IgnoreError();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Used(), OnDisk());
  EXPECT_EQ(store_->Stats()->quarantined_files, 0u);
}

}  // namespace
}  // namespace docmem::store
