#include "adapter_store/adapter_store.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "adapter_store/testing/adapter_store_fixture.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::AdapterStoreTest;
using store_test::Ingest;
using store_test::Key;
using store_test::TemporaryFolder;

// ---- The folder ----

TEST_F(AdapterStoreTest, SecondProcessIsRefused) {
  EXPECT_TRUE(absl::IsFailedPrecondition(AdapterStore::Open(Options()).status()));
}

TEST_F(AdapterStoreTest, GenerationGrowsAndSettingsStay) {
  const uint64_t first = store_->generation();
  ASSERT_OK(store_->PutSetting("dtype", "bfloat16"));
  EXPECT_FALSE(store_->GetSetting("other")->has_value());
  Open();
  EXPECT_EQ(store_->generation(), first + 1);
  EXPECT_EQ(**store_->GetSetting("dtype"), "bfloat16");
}

TEST_F(AdapterStoreTest, FolderIsForItsOwnerOnly) {
  TemporaryFolder parent;
  AdapterStoreOptions options;
  options.folder = parent.path() + "/new";
  const auto opened = AdapterStore::Open(std::move(options));
  ASSERT_OK(opened);
  ASSERT_OK(Ingest(**opened, Key("a"), "text", 1));
  struct stat info;
  ASSERT_EQ(stat((parent.path() + "/new").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(parent.path() + "/new")) {
    ASSERT_EQ(stat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0077, 0u) << entry.path();
  }
}

TEST_F(AdapterStoreTest, DamagedInstanceFileIsNamed) {
  store_.reset();
  std::ofstream(folder_.path() + "/instance") << "nonsense";
  const absl::Status status = AdapterStore::Open(Options()).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_NE(status.message().find("instance"), absl::string_view::npos);
}

// ---- Collections ----

TEST_F(AdapterStoreTest, RegistryOfAnotherDataFolderIsRefused) {
  if (IsSqlite()) GTEST_SKIP() << "SQLite's file lies in the data folder";
  const store_test::TemporaryFolder another;
  AdapterStoreOptions options = Options();
  options.folder = another.path();
  const auto refused = AdapterStore::Open(std::move(options));
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()));
  EXPECT_NE(refused.status().message().find("another data folder"), absl::string_view::npos);
}

TEST_F(AdapterStoreTest, DefaultCollectionExistsAndCanNotBeDeleted) {
  EXPECT_OK(store_->GetCollection("default"));
  const auto deleted = store_->DeleteCollection("default", true);
  EXPECT_EQ(ReasonOf(deleted.status()), reason::kCollectionProtected);
}

TEST_F(AdapterStoreTest, CollectionsAreCreatedOnceAndFound) {
  CollectionSettings settings;
  settings.retain_text = false;
  ASSERT_OK(store_->CreateCollection("books", settings));
  EXPECT_EQ(ReasonOf(store_->CreateCollection("books", {}).status()), reason::kCollectionExists);
  EXPECT_FALSE(store_->GetCollection("books")->settings.retain_text);
  EXPECT_EQ(ReasonOf(store_->GetCollection("none").status()), reason::kCollectionNotFound);
  EXPECT_TRUE(absl::IsInvalidArgument(store_->CreateCollection("../x", {}).status()));
}

TEST_F(AdapterStoreTest, CollectionUpdateChecksTheRevision) {
  const auto raise = [](CollectionSettings& settings) {
    settings.limits.max_queued += 1;
    return absl::OkStatus();
  };
  EXPECT_EQ(store_->UpdateCollection("default", 1, raise)->revision, 2u);
  const auto stale = store_->UpdateCollection("default", 1, raise);
  EXPECT_TRUE(absl::IsAborted(stale.status()));
  EXPECT_EQ(DetailsOf(stale.status()).at("revision"), "2");
  EXPECT_EQ(store_->UpdateCollection("default", 0, raise)->settings.limits.max_queued, 2u);
  const auto refused = store_->UpdateCollection(
      "default", 0, [](CollectionSettings&) { return absl::InvalidArgumentError("no"); });
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  EXPECT_EQ(store_->GetCollection("default")->revision, 3u);
}

TEST_F(AdapterStoreTest, CollectionDeletionNeedsForceWhileThereAreDocuments) {
  ASSERT_OK(store_->CreateCollection("books", {}));
  ASSERT_OK(Ingest(*store_, {"books", "a"}, "text a", 1));
  ASSERT_OK(Ingest(*store_, {"books", "b"}, "text b", 1));
  EXPECT_EQ(ReasonOf(store_->DeleteCollection("books", false).status()),
            reason::kCollectionNotEmpty);
  EXPECT_EQ(*store_->DeleteCollection("books", true), 2u);
  EXPECT_EQ(OnDisk(), 0u);
  EXPECT_EQ(Used(), 0u);
  EXPECT_EQ(ReasonOf(store_->GetDocument({"books", "a"}).status()), reason::kCollectionNotFound);
}

TEST_F(AdapterStoreTest, CollectionListPagesSurviveInserts) {
  for (const char* name : {"b", "d", "f"}) ASSERT_OK(store_->CreateCollection(name, {}));
  const auto first = store_->ListCollections({.size = 2});
  ASSERT_OK(first);
  EXPECT_EQ(first->items.back().name, "d");
  ASSERT_OK(store_->CreateCollection("a", {}));
  ASSERT_OK(store_->CreateCollection("e", {}));
  const auto second = store_->ListCollections({.size = 2, .token = first->next_token});
  ASSERT_OK(second);
  ASSERT_EQ(second->items.size(), 2u);
  EXPECT_EQ(second->items[0].name, "default");
  EXPECT_EQ(second->items[1].name, "e");
  EXPECT_FALSE(store_->ListCollections({.size = 0}).ok());
  EXPECT_FALSE(store_->ListCollections({.size = 1001}).ok());
}

TEST_F(AdapterStoreTest, SettingsAloneAreThoseOfTheCollection) {
  CollectionSettings settings;
  settings.limits.max_in_flight = 7;
  settings.default_mode = "BASE";
  ASSERT_OK(store_->CreateCollection("law", settings));
  const auto found = store_->GetCollectionSettings("law");
  ASSERT_OK(found);
  EXPECT_EQ(found->limits.max_in_flight, 7U);
  EXPECT_EQ(found->default_mode, "BASE");
  EXPECT_EQ(ReasonOf(store_->GetCollectionSettings("none").status()), reason::kCollectionNotFound);
  EXPECT_FALSE(store_->GetCollectionSettings("../law").ok());
}

TEST_F(AdapterStoreTest, CollectionLimitsAreKeptExactly) {
  const auto limit = [&](uint32_t documents, uint64_t bytes) {
    return store_->UpdateCollection("default", 0, [&](CollectionSettings& settings) {
      settings.limits.max_documents = documents;
      settings.limits.max_bytes = bytes;
      return absl::OkStatus();
    });
  };
  ASSERT_OK(limit(1, 0));
  ASSERT_OK(Ingest(*store_, Key("a"), "text", 1));
  const absl::Status documents = Ingest(*store_, Key("b"), "text", 1).status();
  EXPECT_EQ(ReasonOf(documents), reason::kQuotaMaxDocuments);
  EXPECT_EQ(DetailsOf(documents).at("used"), "1");
  const uint64_t stored = store_->GetCollection("default")->stored_bytes;
  ASSERT_OK(limit(0, stored * 2 - 1));
  EXPECT_EQ(ReasonOf(Ingest(*store_, Key("b"), "text", 1).status()), reason::kQuotaMaxBytes);
  EXPECT_EQ(OnDisk(), stored) << "what was written for the refused one is gone";
  ASSERT_OK(limit(0, stored * 2));
  EXPECT_OK(Ingest(*store_, Key("b"), "text", 1));
}

}  // namespace
}  // namespace docmem::store
