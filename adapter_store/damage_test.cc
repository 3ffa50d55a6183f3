#include <filesystem>
#include <fstream>

#include "adapter_store/testing/adapter_store_fixture.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::AdapterOf;
using store_test::AdapterStoreTest;
using store_test::CacheOf;
using store_test::Ingest;
using store_test::Key;
using store_test::ReadAll;
using store_test::SpecOf;

using DamageTest = AdapterStoreTest;

TEST_F(DamageTest, DamagedCacheIsQuarantinedAndTheRestIsServed) {
  ASSERT_OK(Ingest(*store_, Key("other"), "text", 1));
  const auto document = Ingest(*store_, Key("a"), "text", 1);
  ASSERT_OK(document);
  const StoredFile file = document->caches[0].file;
  FlipByte(file);
  const absl::Status damaged = ReadAll(*store_, file).status();
  EXPECT_TRUE(absl::IsDataLoss(damaged));
  EXPECT_EQ(ReasonOf(damaged), reason::kArtifactDamaged);
  FlipByte(file);
  EXPECT_TRUE(absl::IsDataLoss(ReadAll(*store_, file).status())) << "once damaged, not trusted";
  Open();
  EXPECT_TRUE(store_->GetDocument(Key("a"))->caches[0].file.quarantined);
  EXPECT_EQ(store_->Stats()->quarantined_files, 1u);
  EXPECT_EQ(*store_->ReadText(Key("a")), "text");
  EXPECT_OK(ReadAll(*store_, store_->GetDocument(Key("other"))->caches[0].file));
  const auto mended =
      store_->PublishCaches(Key("a"), SpecOf("text").text_sha256, {CacheOf(1, "built again")});
  ASSERT_OK(mended);
  ASSERT_EQ(mended->caches.size(), 1u);
  EXPECT_EQ(*ReadAll(*store_, mended->caches[0].file), "built again");
  EXPECT_EQ(store_->Stats()->quarantined_files, 0u);
  EXPECT_EQ(Used(), OnDisk());
}

TEST_F(DamageTest, MissingAndReplacedFilesAreDataLossAndTargetsStayUntouched) {
  const auto document = Ingest(*store_, Key("a"), "text", 1);
  ASSERT_OK(document);
  std::filesystem::remove(PathOf(document->caches[0].file));
  EXPECT_TRUE(absl::IsDataLoss(ReadAll(*store_, document->caches[0].file).status()));
  const std::string outside = folder_.path() + "/outside";
  std::ofstream(outside) << "outside";
  std::filesystem::remove(PathOf(*document->text));
  std::filesystem::create_symlink(outside, PathOf(*document->text));
  EXPECT_TRUE(absl::IsDataLoss(store_->ReadText(Key("a")).status()));
  ASSERT_OK(store_->DeleteDocument(Key("a"), 0));
  EXPECT_TRUE(std::filesystem::exists(outside));
}

TEST_F(DamageTest, DamagedAdapterIsMendedByUploadingItAgain) {
  ASSERT_OK(Ingest(*store_, Key("a"), "text", 1));
  const auto adapter = store_->PublishAdapter(AdapterOf(Key("a"), 1, "weights"));
  ASSERT_OK(adapter);
  ASSERT_OK(store_->Quarantine(adapter->packed, "a tensor has another shape"));
  EXPECT_TRUE(store_->GetAdapter(Key("a"), 1)->quarantined());
  const absl::Status status = ReadAll(*store_, adapter->packed).status();
  EXPECT_NE(status.message().find("another shape"), absl::string_view::npos);
  const auto again = store_->PublishAdapter(AdapterOf(Key("a"), 1, "weights"));
  ASSERT_OK(again);
  EXPECT_EQ(again->version, 1u);
  EXPECT_FALSE(again->quarantined());
  EXPECT_OK(ReadAll(*store_, again->packed));
  EXPECT_EQ(Used(), OnDisk());
}

TEST_F(DamageTest, DamagedRowQuarantinesItsDocumentOnly) {
  const char* const damages[] = {
      "UPDATE documents SET title = 'x' WHERE name = 'a'",
      "UPDATE documents SET state = 77 WHERE name = 'a'",
      "UPDATE documents SET text_bytes = -5 WHERE name = 'a'",
      "UPDATE documents SET evaluation = '*' WHERE name = 'a'",
      "UPDATE caches SET ratio_ppm = 1 WHERE document_id = (SELECT id FROM documents "
      "WHERE name = 'a')",
      "UPDATE caches SET identity = '[' WHERE document_id = (SELECT id FROM documents "
      "WHERE name = 'a')",
      "UPDATE adapters SET hash = 'x' WHERE document_id = (SELECT id FROM documents "
      "WHERE name = 'a')",
      "UPDATE files SET digest = 'x' WHERE document_id = (SELECT id FROM documents "
      "WHERE name = 'a')",
  };
  for (const char* damage : damages) {
    for (const char* id : {"a", "b"}) {
      ASSERT_OK(Ingest(*store_, Key(id), "text", 1));
      ASSERT_OK(store_->PublishAdapter(AdapterOf(Key(id), 1, "w")));
    }
    store_.reset();
    Sql(damage);
    Open();
    const auto damaged = store_->GetDocument(Key("a"));
    ASSERT_OK(damaged);
    EXPECT_EQ(damaged->state, DocumentState::kQuarantined) << damage;
    EXPECT_FALSE(damaged->state_reason.empty());
    EXPECT_EQ(store_->Stats()->quarantined_documents, 1u) << damage;
    EXPECT_EQ(store_->GetDocument(Key("b"))->state, DocumentState::kReady);
    EXPECT_EQ(*store_->ReadText(Key("b")), "text");
    EXPECT_EQ(ReasonOf(store_->ReadText(Key("a")).status()), reason::kDocumentQuarantined)
        << damage;
    EXPECT_EQ(ReasonOf(store_->BeginDocument(Key("a"), SpecOf("text"), 0).status()),
              reason::kDocumentQuarantined);
    EXPECT_EQ(ReasonOf(store_->UpdateDocument(Key("a"), 0, {}).status()),
              reason::kDocumentQuarantined);
    EXPECT_EQ(ReasonOf(store_->PublishAdapter(AdapterOf(Key("a"), 2, "w")).status()),
              reason::kDocumentQuarantined);
    EXPECT_EQ(store_->ListDocuments("default", {}, {})->items.size(), 2u);
    for (const char* id : {"a", "b"}) ASSERT_OK(store_->DeleteDocument(Key(id), 0));
    EXPECT_EQ(Used(), OnDisk());
    EXPECT_EQ(OnDisk(), 0u);
  }
}

TEST_F(DamageTest, DocumentWithADamagedNameGetsOneThatCanBeDeleted) {
  if (!IsSqlite()) GTEST_SKIP() << "PostgreSQL keeps valid UTF-8 alone";
  ASSERT_OK(Ingest(*store_, Key("a"), "text", 1));
  store_.reset();
  Sql("UPDATE documents SET name = CAST(x'ff2f' AS TEXT)");
  Open();
  const auto list = store_->ListDocuments("default", {}, {});
  ASSERT_OK(list);
  ASSERT_EQ(list->items.size(), 1u);
  EXPECT_EQ(list->items[0].key.id, "damaged-1");
  EXPECT_EQ(list->items[0].state, DocumentState::kQuarantined);
  EXPECT_OK(store_->DeleteDocument(list->items[0].key, 0));
}

TEST_F(DamageTest, DamagedCollectionRowGetsSafeSettings) {
  ASSERT_OK(Ingest(*store_, Key("a"), "text", 1));
  store_.reset();
  Sql("UPDATE collections SET default_ratio_ppm = 77");
  Open();
  const auto collection = store_->GetCollection("default");
  ASSERT_OK(collection);
  EXPECT_FALSE(collection->settings.retain_text);
  EXPECT_EQ(collection->settings.default_ratio_ppm, 900000u);
  EXPECT_EQ(store_->GetDocument(Key("a"))->state, DocumentState::kReady);
}

TEST_F(DamageTest, LabelsThatAreNotUtf8AreNotGivenOn) {
  if (!IsSqlite()) GTEST_SKIP() << "PostgreSQL keeps valid UTF-8 alone";
  ASSERT_OK(Ingest(*store_, Key("a"), "text", 1));
  store_.reset();
  Sql("INSERT INTO labels VALUES (1, 'k', CAST(x'ff' AS TEXT))");
  Open();
  const auto document = store_->GetDocument(Key("a"));
  ASSERT_OK(document);
  EXPECT_EQ(document->state, DocumentState::kQuarantined);
  EXPECT_TRUE(document->spec.labels.empty());
}

}  // namespace
}  // namespace docmem::store
