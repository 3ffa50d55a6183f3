#include "adapter_store/document_import.h"

#include <memory>
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

class DocumentImportTest : public AdapterStoreTest {
 protected:
  std::unique_ptr<DocumentImport> Begin(const std::string& id, uint64_t replaces = 0) {
    auto import = store_->BeginImport(Key(id), replaces);
    EXPECT_TRUE(import.ok()) << import.status();
    return import.ok() ? *std::move(import) : nullptr;
  }

  static ImportedAdapter Adapter(uint32_t version, AdapterState state = AdapterState::kReady) {
    AdapterPublication made = AdapterOf(Key("x"), version, "weights");
    return {version, state, made.spec, made.files, made.packed};
  }

  // Text, two adapters and two caches, of which the second was written by adapter 5.
  static void Stage(DocumentImport& import) {
    ASSERT_OK(import.AddText("text"));
    ASSERT_OK(import.AddAdapter(Adapter(2, AdapterState::kStale)));
    ASSERT_OK(import.AddAdapter(Adapter(5)));
    ASSERT_OK(import.AddCache(CacheOf(1, "one")));
    NewCache of_adapter = CacheOf(2, "two");
    of_adapter.spec.writer_adapter_hash = Hash(5);
    ASSERT_OK(import.AddCache(of_adapter));
  }

  static ImportedDocument Whole() {
    ImportedDocument document{SpecOf("text"), 90, Hash(2), 5, "\x01\x02"};
    document.spec.title = "title";
    document.spec.labels = {{"a", "1"}};
    return document;
  }

  void ExpectEmptyStore() {
    EXPECT_EQ(Used(), 0u);
    EXPECT_EQ(OnDisk(), 0u);
    EXPECT_EQ(store_->Stats()->documents, 0u);
  }
};

TEST_F(DocumentImportTest, AllOfADocumentAppearsAtOnceWithItsVersionsAndDefaults) {
  const auto import = Begin("a");
  Stage(*import);
  EXPECT_EQ(ReasonOf(store_->GetDocument(Key("a")).status()), reason::kDocumentNotFound);
  const auto document = import->Publish(Whole());
  ASSERT_OK(document);
  EXPECT_EQ(document->state, DocumentState::kReady);
  EXPECT_EQ(document->spec.title, "title");
  EXPECT_EQ(document->spec.labels, (Labels{{"a", "1"}}));
  EXPECT_EQ(document->default_cache_id, Hash(2));
  EXPECT_EQ(document->current_adapter_version, 5u);
  EXPECT_EQ(document->evaluation, "\x01\x02");
  EXPECT_EQ(document->revision, 1u);
  ASSERT_EQ(document->caches.size(), 2u);
  EXPECT_EQ(*ReadAll(*store_, document->caches[0].file), "one");
  EXPECT_EQ(*store_->ReadText(Key("a")), "text");
  EXPECT_EQ(store_->GetAdapter(Key("a"), 2)->state, AdapterState::kStale);
  EXPECT_EQ(*ReadAll(*store_, store_->GetAdapter(Key("a"), 0)->packed), "weightsweights");
  EXPECT_EQ(store_->PublishAdapter(AdapterOf(Key("a"), 9, "new"))->version, 6u);
  EXPECT_EQ(Used(), OnDisk());
  Open();
  EXPECT_EQ(store_->Stats()->orphans_collected, 0u);
  EXPECT_EQ(*store_->ReadText(Key("a")), "text");
}

TEST_F(DocumentImportTest, WhatIsNotPublishedLeavesNothing) {
  auto import = Begin("a");
  Stage(*import);
  EXPECT_GT(OnDisk(), 0u);
  ASSERT_OK(store_->CollectGarbage());
  EXPECT_GT(OnDisk(), 0u);
  import.reset();
  ExpectEmptyStore();
}

TEST_F(DocumentImportTest, ACacheWhoseAdapterDidNotComeIsRefused) {
  auto import = Begin("a");
  NewCache cache = CacheOf(1, "one");
  cache.spec.scorer_adapter_hash = Hash(7);
  ASSERT_OK(import->AddCache(cache));
  ImportedDocument document = Whole();
  document.default_cache_id = Hash(1);
  document.current_adapter_version = 0;
  EXPECT_EQ(ReasonOf(import->Publish(document).status()), reason::kAdapterNotFound);
  import.reset();
  ExpectEmptyStore();
}

TEST_F(DocumentImportTest, AnExistingDocumentStaysUnlessItsRevisionIsNamed) {
  const auto old = Ingest(*store_, Key("a"), "old", 1);
  ASSERT_OK(old);
  ASSERT_OK(store_->PublishAdapter(AdapterOf(Key("a"), 1, "old weights")));
  const uint64_t revision = store_->GetDocument(Key("a"))->revision;
  EXPECT_EQ(ReasonOf(store_->BeginImport(Key("a"), 0).status()), reason::kDocumentExists);
  EXPECT_EQ(ReasonOf(store_->BeginImport(Key("a"), revision + 1).status()),
            reason::kRevisionMismatch);
  auto import = Begin("a", revision);
  Stage(*import);
  EXPECT_EQ(*store_->ReadText(Key("a")), "old");
  const auto document = import->Publish(Whole());
  ASSERT_OK(document);
  EXPECT_EQ(document->revision, revision + 1);
  EXPECT_NE(document->row, old->row);
  EXPECT_EQ(document->adapter_count, 2u);
  EXPECT_EQ(*store_->ReadText(Key("a")), "text");
  EXPECT_EQ(Used(), OnDisk());
}

TEST_F(DocumentImportTest, ADocumentThatCameMeanwhileIsNotOverwritten) {
  auto import = Begin("a");
  Stage(*import);
  ASSERT_OK(Ingest(*store_, Key("a"), "other", 3));
  EXPECT_EQ(ReasonOf(import->Publish(Whole()).status()), reason::kDocumentExists);
  import.reset();
  EXPECT_EQ(*store_->ReadText(Key("a")), "other");
  EXPECT_EQ(Used(), OnDisk());
}

TEST_F(DocumentImportTest, LimitsOfTheCollectionAreKept) {
  ASSERT_OK(store_->UpdateCollection("default", 0, [](CollectionSettings& settings) {
    settings.limits.max_bytes = 8;
    return absl::OkStatus();
  }));
  auto import = Begin("a");
  Stage(*import);
  EXPECT_EQ(ReasonOf(import->Publish(Whole()).status()), reason::kQuotaMaxBytes);
  import.reset();
  ExpectEmptyStore();
}

}  // namespace
}  // namespace docmem::store
