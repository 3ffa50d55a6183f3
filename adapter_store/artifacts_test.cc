#include <string>

#include "adapter_store/testing/adapter_store_fixture.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::AdapterOf;
using store_test::AdapterStoreTest;
using store_test::CacheOf;
using store_test::FileOf;
using store_test::Hash;
using store_test::Ingest;
using store_test::Key;
using store_test::ReadAll;
using store_test::SpecOf;

using ArtifactsTest = AdapterStoreTest;

// ---- Caches ----

TEST_F(ArtifactsTest, CacheIsAddedOnceAndDefaultFollowsDeletion) {
  ASSERT_OK(Ingest(*store_, Key("a"), "text", 1));
  const std::string sha = SpecOf("text").text_sha256;
  const auto added = store_->PublishCaches(Key("a"), sha, {CacheOf(2, "two"), CacheOf(2, "two")});
  ASSERT_OK(added);
  EXPECT_EQ(added->caches.size(), 2u);
  const auto again = store_->PublishCaches(Key("a"), sha, {CacheOf(2, "two")});
  ASSERT_OK(again);
  EXPECT_EQ(again->revision, added->revision);
  EXPECT_EQ(Used(), OnDisk());
  EXPECT_EQ(added->default_cache_id, Hash(1));
  ASSERT_OK(store_->DeleteCache(Key("a"), Hash(1)));
  EXPECT_EQ(store_->GetDocument(Key("a"))->default_cache_id, Hash(2));
  EXPECT_EQ(ReasonOf(store_->DeleteCache(Key("a"), Hash(1))), reason::kCacheNotFound);
  ASSERT_OK(store_->DeleteCache(Key("a"), Hash(2)));
  EXPECT_EQ(store_->GetDocument(Key("a"))->default_cache_id, "");
  ASSERT_OK(store_->PublishCaches(Key("a"), sha, {CacheOf(3, "three")}));
  EXPECT_EQ(store_->GetDocument(Key("a"))->default_cache_id, Hash(3));
  EXPECT_EQ(Used(), OnDisk());
}

TEST_F(ArtifactsTest, CacheOfAnEarlierTextIsRefused) {
  ASSERT_OK(Ingest(*store_, Key("a"), "text", 1));
  EXPECT_TRUE(absl::IsAborted(
      store_->PublishCaches(Key("a"), SpecOf("old").text_sha256, {CacheOf(2, "x")}).status()));
  EXPECT_EQ(Used(), OnDisk());
}

// ---- Adapters ----

TEST_F(ArtifactsTest, AdapterVersionsCountUpAndContentIsStoredOnce) {
  ASSERT_OK(Ingest(*store_, Key("a"), "text", 1));
  const auto first = store_->PublishAdapter(AdapterOf(Key("a"), 1, "weights one"));
  ASSERT_OK(first);
  EXPECT_EQ(first->version, 1u);
  EXPECT_TRUE(first->current);
  ASSERT_EQ(first->files.size(), 2u);
  EXPECT_EQ(first->files[1].name, "adapter_model.safetensors");
  EXPECT_EQ(*ReadAll(*store_, first->files[1]), "weights one");
  EXPECT_EQ(*ReadAll(*store_, first->packed), "weights oneweights one");
  const uint64_t bytes = OnDisk();
  AdapterPublication second = AdapterOf(Key("a"), 2, "weights two");
  second.make_current = false;
  EXPECT_EQ(store_->PublishAdapter(second)->version, 2u);
  EXPECT_EQ(store_->GetDocument(Key("a"))->current_adapter_version, 1u);
  EXPECT_GT(OnDisk(), bytes);
  const uint64_t both = OnDisk();
  const auto again = store_->PublishAdapter(AdapterOf(Key("a"), 2, "weights two"));
  ASSERT_OK(again);
  EXPECT_EQ(again->version, 2u);
  EXPECT_TRUE(again->current);
  EXPECT_EQ(OnDisk(), both);
  EXPECT_EQ(store_->GetDocument(Key("a"))->adapter_count, 2u);
}

TEST_F(ArtifactsTest, CurrentAdapterIsChosenRolledBackAndProtected) {
  ASSERT_OK(Ingest(*store_, Key("a"), "text", 1));
  for (int i = 1; i <= 3; ++i) ASSERT_OK(store_->PublishAdapter(AdapterOf(Key("a"), i, "w")));
  EXPECT_EQ(store_->GetAdapter(Key("a"), 0)->version, 3u);
  const auto change = store_->SetCurrentAdapter(Key("a"), 1, 0);
  ASSERT_OK(change);
  EXPECT_EQ(change->previous_version, 3u);
  EXPECT_EQ(change->current_version, 1u);
  EXPECT_EQ(ReasonOf(store_->DeleteAdapter(Key("a"), 1).status()), reason::kAdapterIsCurrent);
  EXPECT_TRUE(absl::IsAborted(
      store_->SetCurrentAdapter(Key("a"), 2, change->document_revision - 1).status()));
  ASSERT_OK(store_->SetCurrentAdapter(Key("a"), 0, 0));
  EXPECT_EQ(ReasonOf(store_->GetAdapter(Key("a"), 0).status()), reason::kAdapterNotFound);
  EXPECT_OK(store_->DeleteAdapter(Key("a"), 1));
  EXPECT_EQ(ReasonOf(store_->SetCurrentAdapter(Key("a"), 1, 0).status()), reason::kAdapterNotFound);
  ASSERT_OK(store_->PublishAdapter(AdapterOf(Key("a"), 1, "w")));
  EXPECT_EQ(store_->GetAdapter(Key("a"), 0)->version, 4u) << "a version is never used again";
  EXPECT_EQ(Used(), OnDisk());
}

TEST_F(ArtifactsTest, DeletingAnAdapterTakesItsCachesAlong) {
  ASSERT_OK(Ingest(*store_, Key("a"), "text", 1));
  ASSERT_OK(store_->PublishAdapter(AdapterOf(Key("a"), 7, "w")));
  NewCache written = CacheOf(2, "by the adapter");
  written.spec.writer_adapter_hash = Hash(7);
  NewCache scored = CacheOf(3, "scored by it");
  scored.spec.scorer_adapter_hash = Hash(7);
  ASSERT_OK(store_->PublishCaches(Key("a"), SpecOf("text").text_sha256, {written, scored}));
  DocumentEdit edit;
  edit.default_cache_id = Hash(2);
  ASSERT_OK(store_->UpdateDocument(Key("a"), 0, edit));
  ASSERT_OK(store_->SetCurrentAdapter(Key("a"), 0, 0));
  EXPECT_EQ(*store_->DeleteAdapter(Key("a"), 1), 2u);
  const auto document = store_->GetDocument(Key("a"));
  ASSERT_EQ(document->caches.size(), 1u);
  EXPECT_EQ(document->default_cache_id, Hash(1));
  EXPECT_EQ(Used(), OnDisk());
}

TEST_F(ArtifactsTest, ACacheOfAnAdapterThatIsGoneIsntPublished) {
  ASSERT_OK(Ingest(*store_, Key("a"), "text", 1));
  ASSERT_OK(store_->PublishAdapter(AdapterOf(Key("a"), 7, "w")));
  ASSERT_OK(store_->SetCurrentAdapter(Key("a"), 0, 0));
  ASSERT_OK(store_->DeleteAdapter(Key("a"), 1));
  NewCache written = CacheOf(2, "by the adapter");
  written.spec.writer_adapter_hash = Hash(7);
  NewCache scored = CacheOf(3, "scored by it");
  scored.spec.scorer_adapter_hash = Hash(7);
  for (const NewCache& cache : {written, scored}) {
    const auto refused = store_->PublishCaches(Key("a"), SpecOf("text").text_sha256, {cache});
    EXPECT_EQ(ReasonOf(refused.status()), reason::kAdapterNotFound) << refused.status();
  }
  EXPECT_EQ(store_->GetDocument(Key("a"))->caches.size(), 1u);
  EXPECT_EQ(Used(), OnDisk());
}

TEST_F(ArtifactsTest, AdapterListIsNewestFirstInPages) {
  ASSERT_OK(Ingest(*store_, Key("a"), "text", 1));
  for (int i = 1; i <= 5; ++i) ASSERT_OK(store_->PublishAdapter(AdapterOf(Key("a"), i, "w")));
  const auto first = store_->ListAdapters(Key("a"), {.size = 2});
  ASSERT_OK(first);
  EXPECT_EQ(first->items[0].version, 5u);
  ASSERT_OK(store_->PublishAdapter(AdapterOf(Key("a"), 6, "w")));
  const auto second = store_->ListAdapters(Key("a"), {.size = 9, .token = first->next_token});
  ASSERT_OK(second);
  ASSERT_EQ(second->items.size(), 3u);
  EXPECT_EQ(second->items[0].version, 3u);
}

TEST_F(ArtifactsTest, AdapterFileNamesMustBeDistinct) {
  ASSERT_OK(Ingest(*store_, Key("a"), "text", 1));
  AdapterPublication publication = AdapterOf(Key("a"), 1, "w");
  publication.files.push_back(FileOf("adapter_config.json", "{}"));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->PublishAdapter(publication).status()));
}

}  // namespace
}  // namespace docmem::store
