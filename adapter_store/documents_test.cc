#include <algorithm>
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

using DocumentsTest = AdapterStoreTest;

TEST_F(DocumentsTest, DocumentIsBuildingThenReadyAndStaysAfterRestart) {
  DocumentSpec spec = SpecOf("the text");
  spec.title = "Title";
  spec.labels = {{"lang", "en"}};
  spec.pinned = true;
  spec.system_text = "system";
  const auto begun = store_->BeginDocument(Key("a"), spec, 0);
  ASSERT_OK(begun);
  EXPECT_EQ(begun->state, DocumentState::kBuilding);
  EXPECT_EQ(store_->GetDocument(Key("a"))->state, DocumentState::kBuilding);
  DocumentPublication publication;
  publication.key = Key("a");
  publication.row = begun->row;
  publication.spec = spec;
  publication.document_tokens = 42;
  publication.text = "the text";
  publication.caches.push_back(CacheOf(1, "first"));
  publication.caches.push_back(CacheOf(2, "second"));
  ASSERT_OK(store_->PublishDocument(publication));
  Open();
  const auto document = store_->GetDocument(Key("a"));
  ASSERT_OK(document);
  EXPECT_EQ(document->state, DocumentState::kReady);
  EXPECT_EQ(document->spec.title, "Title");
  EXPECT_EQ(document->spec.labels, spec.labels);
  EXPECT_TRUE(document->spec.pinned);
  EXPECT_EQ(document->document_tokens, 42u);
  EXPECT_EQ(document->default_cache_id, Hash(1));
  ASSERT_EQ(document->caches.size(), 2u);
  EXPECT_EQ(*ReadAll(*store_, document->caches[1].file), "second");
  EXPECT_EQ(*store_->ReadText(Key("a")), "the text");
  EXPECT_EQ(document->stored_bytes, OnDisk());
}

TEST_F(DocumentsTest, HostileIdsAreInvalidEverywhere) {
  for (const std::string& id : {std::string("../x"), std::string("/etc"), std::string("a/../b"),
                                std::string("a\0b", 3), std::string(4096, 'x'), std::string("."),
                                std::string(), std::string("a/"), std::string("\xD0\xB0")}) {
    const DocumentKey key = Key(id);
    EXPECT_TRUE(absl::IsInvalidArgument(Ingest(*store_, key, "text", 1).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(store_->GetDocument(key).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(store_->DeleteDocument(key, 0)));
    EXPECT_TRUE(absl::IsInvalidArgument(store_->UpdateDocument(key, 0, {}).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(store_->ReadText(key).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(store_->PublishAdapter(AdapterOf(key, 1, "w")).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(store_->GetAdapter(key, 1).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(store_->GetDocument({id, "a"}).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(store_->GetCollection(id).status()));
  }
  EXPECT_EQ(store_->Stats()->documents, 0u);
}

TEST_F(DocumentsTest, SameTextAgainIsNoWorkAndAnotherTextIsRefused) {
  const auto first = Ingest(*store_, Key("a"), "text", 1);
  ASSERT_OK(first);
  const auto again = store_->BeginDocument(Key("a"), SpecOf("text"), 0);
  ASSERT_OK(again);
  EXPECT_EQ(again->state, DocumentState::kReady);
  EXPECT_EQ(again->revision, first->revision);
  const absl::Status other = store_->BeginDocument(Key("a"), SpecOf("other"), 0).status();
  EXPECT_EQ(ReasonOf(other), reason::kDocumentExists);
  EXPECT_TRUE(absl::IsAborted(
      store_->BeginDocument(Key("a"), SpecOf("other"), first->revision + 1).status()));
}

TEST_F(DocumentsTest, ReplacingServesTheOldTextUntilTheNewOneIsThere) {
  const auto old = Ingest(*store_, Key("a"), "old text", 1);
  ASSERT_OK(old);
  ASSERT_OK(store_->PublishAdapter(AdapterOf(Key("a"), 5, "weights")));
  DocumentEdit edit;
  edit.evaluation = "measured on the old text";
  const auto edited = store_->UpdateDocument(Key("a"), 0, edit);
  ASSERT_OK(edited);
  ASSERT_OK(store_->BeginDocument(Key("a"), SpecOf("new text"), edited->revision));
  EXPECT_EQ(*store_->ReadText(Key("a")), "old text");
  const auto replaced = Ingest(*store_, Key("a"), "new text", 2, edited->revision);
  ASSERT_OK(replaced);
  EXPECT_EQ(replaced->row, old->row);
  EXPECT_EQ(*store_->ReadText(Key("a")), "new text");
  ASSERT_EQ(replaced->caches.size(), 1u);
  EXPECT_EQ(replaced->caches[0].spec.id, Hash(2));
  EXPECT_EQ(replaced->default_cache_id, Hash(2));
  EXPECT_EQ(replaced->current_adapter_version, 0u);
  EXPECT_TRUE(replaced->evaluation.empty());
  EXPECT_EQ(store_->GetAdapter(Key("a"), 1)->state, AdapterState::kStale);
  EXPECT_EQ(ReasonOf(store_->SetCurrentAdapter(Key("a"), 1, 0).status()), reason::kAdapterStale);
  EXPECT_TRUE(absl::IsNotFound(ReadAll(*store_, old->caches[0].file).status()));
  EXPECT_EQ(Used(), OnDisk());
}

TEST_F(DocumentsTest, ReplacementLosesAgainstAChangeInBetween) {
  const auto old = Ingest(*store_, Key("a"), "old", 1);
  ASSERT_OK(old);
  DocumentPublication publication;
  publication.key = Key("a");
  publication.row = old->row;
  publication.replaces = old->revision;
  publication.spec = SpecOf("new");
  DocumentEdit edit;
  edit.title = "edited meanwhile";
  ASSERT_OK(store_->UpdateDocument(Key("a"), 0, edit));
  EXPECT_TRUE(absl::IsAborted(store_->PublishDocument(publication).status()));
  EXPECT_EQ(*store_->ReadText(Key("a")), "old");
}

TEST_F(DocumentsTest, DocumentDeletedWhileBuildingIsNotBroughtBack) {
  const auto begun = store_->BeginDocument(Key("a"), SpecOf("text"), 0);
  ASSERT_OK(begun);
  ASSERT_OK(store_->DeleteDocument(Key("a"), 0));
  DocumentPublication publication;
  publication.key = Key("a");
  publication.row = begun->row;
  publication.spec = SpecOf("text");
  publication.caches.push_back(CacheOf(1, "bytes"));
  EXPECT_TRUE(absl::IsNotFound(store_->PublishDocument(publication).status()));
  const auto next = store_->BeginDocument(Key("a"), SpecOf("text"), 0);
  ASSERT_OK(next);
  EXPECT_NE(next->row, begun->row);
  EXPECT_TRUE(absl::IsAborted(store_->PublishDocument(publication).status()));
  EXPECT_EQ(OnDisk(), 0u);
}

TEST_F(DocumentsTest, FailedIngestionKeepsItsReasonAndCanBeRepeated) {
  const auto begun = store_->BeginDocument(Key("a"), SpecOf("text"), 0);
  ASSERT_OK(begun);
  ASSERT_OK(store_->FailDocument(Key("a"), begun->row, std::string("why\xFF")));
  const auto failed = store_->GetDocument(Key("a"));
  EXPECT_EQ(failed->state, DocumentState::kFailed);
  EXPECT_EQ(failed->state_reason, "why?");
  EXPECT_EQ(ReasonOf(store_->PublishAdapter(AdapterOf(Key("a"), 1, "w")).status()),
            reason::kDocumentNotReady);
  EXPECT_OK(Ingest(*store_, Key("a"), "other text", 1));
  ASSERT_OK(store_->FailDocument(Key("a"), begun->row, "too late"));
  EXPECT_EQ(store_->GetDocument(Key("a"))->state, DocumentState::kReady);
  EXPECT_OK(store_->FailDocument(Key("none"), 999, "absent"));
}

TEST_F(DocumentsTest, InterruptedIngestionIsFailedAfterRestart) {
  ASSERT_OK(store_->BeginDocument(Key("a"), SpecOf("text"), 0));
  Open();
  EXPECT_EQ(store_->GetDocument(Key("a"))->state, DocumentState::kFailed);
  EXPECT_OK(Ingest(*store_, Key("a"), "text", 1));
}

TEST_F(DocumentsTest, ProducerFailureFailsThePublicationAndLeavesNothing) {
  const auto begun = store_->BeginDocument(Key("a"), SpecOf("text"), 0);
  ASSERT_OK(begun);
  DocumentPublication publication;
  publication.key = Key("a");
  publication.row = begun->row;
  publication.spec = SpecOf("text");
  publication.text = "text";
  publication.caches.push_back(CacheOf(1, "bytes"));
  publication.caches[0].file.producer = [](ArtifactWriter& writer) {
    writer.Append(std::vector<std::byte>(3)).IgnoreError();
    return absl::ResourceExhaustedError("device lost");
  };
  EXPECT_TRUE(absl::IsResourceExhausted(store_->PublishDocument(publication).status()));
  EXPECT_EQ(OnDisk(), 0u);
  EXPECT_EQ(store_->GetDocument(Key("a"))->state, DocumentState::kBuilding);
}

TEST_F(DocumentsTest, UpdateChangesOnlyWhatIsSetAndChecksTheRevision) {
  const auto document = Ingest(*store_, Key("a"), "text", 1);
  ASSERT_OK(document);
  DocumentEdit edit;
  edit.title = "new";
  edit.labels = Labels{{"k", "v"}};
  const auto updated = store_->UpdateDocument(Key("a"), document->revision, edit);
  ASSERT_OK(updated);
  EXPECT_EQ(updated->spec.title, "new");
  EXPECT_FALSE(updated->spec.pinned);
  EXPECT_EQ(updated->revision, document->revision + 1);
  EXPECT_TRUE(absl::IsAborted(store_->UpdateDocument(Key("a"), document->revision, edit).status()));
  edit = {};
  edit.default_cache_id = Hash(9);
  EXPECT_EQ(ReasonOf(store_->UpdateDocument(Key("a"), 0, edit).status()), reason::kCacheNotFound);
  edit = {};
  edit.drop_text = true;
  edit.pinned = true;
  ASSERT_OK(store_->UpdateDocument(Key("a"), 0, edit));
  EXPECT_EQ(ReasonOf(store_->ReadText(Key("a")).status()), reason::kTextNotRetained);
  EXPECT_EQ(store_->GetDocument(Key("a"))->spec.labels.at("k"), "v");
  EXPECT_EQ(Used(), OnDisk());
  edit = {};
  edit.title = std::string(513, 'x');
  EXPECT_TRUE(absl::IsInvalidArgument(store_->UpdateDocument(Key("a"), 0, edit).status()));
}

TEST_F(DocumentsTest, ListPagesSurviveInsertsAndDeletions) {
  for (const char* id : {"b", "d", "f", "h"}) ASSERT_OK(Ingest(*store_, Key(id), "text", 1));
  const auto first = store_->ListDocuments("default", {}, {.size = 2});
  ASSERT_OK(first);
  EXPECT_EQ(first->items.back().key.id, "d");
  ASSERT_OK(store_->DeleteDocument(Key("d"), 0));
  ASSERT_OK(Ingest(*store_, Key("a"), "text", 1));
  ASSERT_OK(Ingest(*store_, Key("e"), "text", 1));
  const auto second = store_->ListDocuments("default", {}, {.size = 9, .token = first->next_token});
  ASSERT_OK(second);
  std::vector<std::string> ids;
  for (const Document& document : second->items) ids.push_back(document.key.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"e", "f", "h"}));
  EXPECT_TRUE(second->next_token.empty());
  DocumentQuery other;
  other.descending = true;
  EXPECT_TRUE(absl::IsInvalidArgument(
      store_->ListDocuments("default", other, {.size = 9, .token = first->next_token}).status()));
  EXPECT_EQ(ReasonOf(store_->ListDocuments("none", {}, {.size = 1}).status()),
            reason::kCollectionNotFound);
}

TEST_F(DocumentsTest, EveryPageSizeGivesEveryDocumentOnceInBothOrders) {
  for (int i = 0; i < 7; ++i) {
    ASSERT_OK(Ingest(*store_, Key(absl::StrFormat("d%d", (i * 3) % 7)), "text", 1));
  }
  for (const DocumentOrder order : {DocumentOrder::kId, DocumentOrder::kCreated}) {
    for (const bool descending : {false, true}) {
      for (uint32_t size = 1; size <= 8; ++size) {
        std::vector<std::string> ids;
        PageRequest page{.size = size};
        do {
          const auto result =
              store_->ListDocuments("default", {.order = order, .descending = descending}, page);
          ASSERT_OK(result);
          for (const Document& document : result->items) ids.push_back(document.key.id);
          page.token = result->next_token;
        } while (!page.token.empty());
        ASSERT_EQ(ids.size(), 7u);
        if (descending) std::reverse(ids.begin(), ids.end());
        EXPECT_EQ(ids[1], order == DocumentOrder::kId ? "d1" : "d3");
        std::sort(ids.begin(), ids.end());
        EXPECT_EQ(std::unique(ids.begin(), ids.end()), ids.end());
      }
    }
  }
}

}  // namespace
}  // namespace docmem::store
