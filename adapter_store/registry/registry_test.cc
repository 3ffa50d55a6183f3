#include "adapter_store/registry/registry.h"

#include <filesystem>
#include <thread>

#include "adapter_store/registry/store_totals.h"
#include "adapter_store/testing/registry_fixture.h"

namespace docmem::store {
namespace {

using store_test::Hash;
using store_test::RegistryConformanceTest;

TEST_P(RegistryConformanceTest, FailedBodyChangesNothing) {
  const absl::Status status = registry_->Write([&](Sql& sql) {
    STORE_RETURN_IF_ERROR(PutSettingRow(sql, "key", "value"));
    return absl::AbortedError("no");
  });
  EXPECT_TRUE(absl::IsAborted(status));
  Read([](Sql& sql) -> absl::Status {
    EXPECT_FALSE(FindSetting(sql, "key")->has_value());
    return absl::OkStatus();
  });
}

TEST_P(RegistryConformanceTest, CommittedSettingsSurviveReopening) {
  Write([](Sql& sql) { return PutSettingRow(sql, "dtype", "bfloat16"); });
  Write([](Sql& sql) { return PutSettingRow(sql, "dtype", "float32"); });
  Open();
  Read([](Sql& sql) -> absl::Status {
    EXPECT_EQ(*FindSetting(sql, "dtype"), "float32");
    return absl::OkStatus();
  });
}

TEST_P(RegistryConformanceTest, ReadSeesOneStateWhileOthersWrite) {
  Write([](Sql& sql) { return PutSettingRow(sql, "key", "before"); });
  Read([&](Sql& sql) -> absl::Status {
    EXPECT_EQ(*FindSetting(sql, "key"), "before");
    std::thread writer(
        [&] { Write([](Sql& other) { return PutSettingRow(other, "key", "after"); }); });
    writer.join();
    EXPECT_EQ(*FindSetting(sql, "key"), "before");
    return absl::OkStatus();
  });
}

TEST_P(RegistryConformanceTest, WritersRunOneAfterTheOther) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 25;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        Write([](Sql& sql) -> absl::Status {
          STORE_ASSIGN_OR_RETURN(const auto old, FindSetting(sql, "count"));
          return PutSettingRow(sql, "count", std::to_string(std::stoi(old.value_or("0")) + 1));
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Read([](Sql& sql) -> absl::Status {
    EXPECT_EQ(*FindSetting(sql, "count"), std::to_string(kThreads * kRounds));
    return absl::OkStatus();
  });
}

TEST_P(RegistryConformanceTest, CollectionsKeepAllColumns) {
  CollectionRow row;
  row.name = "books";
  row.settings.retain_text = false;
  row.settings.lexical_index = true;
  row.settings.limits = {1, 2, uint64_t{1} << 62, 4};
  row.settings.default_ratio_ppm = 123456;
  row.settings.default_mode = "BASE";
  row.revision = 7;
  row.created = kNow;
  row.updated = kNow + absl::Seconds(1);
  Write([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(row.id, InsertCollection(sql, row));
    return absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsAlreadyExists(
      registry_->Write([&](Sql& sql) { return InsertCollection(sql, row).status(); })));
  Open();
  Read([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const auto found, FindCollection(sql, "books"));
    EXPECT_EQ(found->id, row.id);
    EXPECT_FALSE(found->settings.retain_text);
    EXPECT_TRUE(found->settings.lexical_index);
    EXPECT_EQ(found->settings.limits.max_in_flight, 1u);
    EXPECT_EQ(found->settings.limits.max_queued, 2u);
    EXPECT_EQ(found->settings.limits.max_bytes, uint64_t{1} << 62);
    EXPECT_EQ(found->settings.limits.max_documents, 4u);
    EXPECT_EQ(found->settings.default_ratio_ppm, 123456u);
    EXPECT_EQ(found->settings.default_mode, "BASE");
    EXPECT_EQ(found->revision, 7u);
    EXPECT_EQ(found->created, row.created);
    EXPECT_EQ(found->updated, row.updated);
    EXPECT_FALSE(found->damaged);
    EXPECT_FALSE(FindCollection(sql, "other")->has_value());
    return absl::OkStatus();
  });
}

TEST_P(RegistryConformanceTest, DocumentsKeepAllColumns) {
  const int64_t collection = AddCollection("c");
  DocumentRow row;
  row.collection_id = collection;
  row.name = "id";
  row.state = DocumentState::kFailed;
  row.state_reason = "why";
  row.builder = "me";
  row.spec = {Hash(5), 77, "Ein Titel \xC3\xBC", {{"k", "v"}, {"l", ""}}, true, "system\ntext"};
  row.document_tokens = 99;
  row.default_cache_id = Hash(6);
  row.current_adapter = 3;
  row.last_adapter = 4;
  row.evaluation = std::string("\0\xff\x80 opaque", 10);
  row.revision = 12;
  row.created = kNow;
  row.updated = kNow + absl::Hours(1);
  Write([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(row.id, InsertDocument(sql, row));
    return absl::OkStatus();
  });
  Read([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const auto found, FindDocument(sql, collection, "id"));
    EXPECT_EQ(found->id, row.id);
    EXPECT_EQ(found->state, row.state);
    EXPECT_EQ(found->state_reason, row.state_reason);
    EXPECT_EQ(found->builder, row.builder);
    EXPECT_EQ(found->spec.text_sha256, row.spec.text_sha256);
    EXPECT_EQ(found->spec.text_bytes, row.spec.text_bytes);
    EXPECT_EQ(found->spec.title, row.spec.title);
    EXPECT_TRUE(found->spec.pinned);
    EXPECT_EQ(found->spec.system_text, row.spec.system_text);
    EXPECT_EQ(found->document_tokens, 99u);
    EXPECT_EQ(found->default_cache_id, row.default_cache_id);
    EXPECT_EQ(found->current_adapter, 3u);
    EXPECT_EQ(found->last_adapter, 4u);
    EXPECT_EQ(found->evaluation, row.evaluation);
    EXPECT_EQ(found->revision, 12u);
    EXPECT_EQ(found->created, row.created);
    EXPECT_EQ(found->updated, row.updated);
    EXPECT_FALSE(found->damaged);
    EXPECT_EQ(*LabelsOf(sql, row.id), row.spec.labels);
    EXPECT_EQ((*FindDocumentById(sql, row.id))->name, "id");
    return absl::OkStatus();
  });
}

TEST_P(RegistryConformanceTest, IdsAreUniqueInsideACollectionOnly) {
  const int64_t first = AddCollection("first");
  const int64_t second = AddCollection("second");
  AddDocument(first, "same");
  AddDocument(second, "same");
  DocumentRow row;
  row.collection_id = first;
  row.name = "same";
  EXPECT_TRUE(absl::IsAlreadyExists(
      registry_->Write([&](Sql& sql) { return InsertDocument(sql, row).status(); })));
}

TEST_P(RegistryConformanceTest, ListsInBothOrdersAndDirections) {
  const int64_t collection = AddCollection("c");
  for (const char* name : {"b", "A", "c", "a", "_"}) AddDocument(collection, name);
  AddDocument(AddCollection("other"), "x");
  using Strings = std::vector<std::string>;
  EXPECT_EQ(Names({.collection_id = collection, .limit = 9}), (Strings{"A", "_", "a", "b", "c"}));
  EXPECT_EQ(Names({.collection_id = collection, .query = {.descending = true}, .limit = 2}),
            (Strings{"c", "b"}));
  EXPECT_EQ(Names({.collection_id = collection, .after = SqlValue("a"), .limit = 9}),
            (Strings{"b", "c"}));
  EXPECT_EQ(
      Names({.collection_id = collection, .query = {.order = DocumentOrder::kCreated}, .limit = 3}),
      (Strings{"b", "A", "c"}));
  EXPECT_EQ(Names({.collection_id = collection,
                   .query = {.order = DocumentOrder::kCreated, .descending = true},
                   .limit = 3}),
            (Strings{"_", "a", "c"}));
}

TEST_P(RegistryConformanceTest, FiltersByAllLabels) {
  const int64_t collection = AddCollection("c");
  AddDocument(collection, "a", {{"lang", "en"}, {"year", "1999"}});
  AddDocument(collection, "b", {{"lang", "en"}});
  AddDocument(collection, "c", {{"lang", "de"}, {"year", "1999"}});
  using Strings = std::vector<std::string>;
  EXPECT_EQ(Names({.collection_id = collection, .query = {.labels = {{"lang", "en"}}}, .limit = 9}),
            (Strings{"a", "b"}));
  EXPECT_EQ(Names({.collection_id = collection,
                   .query = {.labels = {{"lang", "en"}, {"year", "1999"}}},
                   .limit = 9}),
            (Strings{"a"}));
  EXPECT_TRUE(
      Names({.collection_id = collection, .query = {.labels = {{"year", "en"}}}, .limit = 9})
          .empty());
}

TEST_P(RegistryConformanceTest, CollectionWithDocumentsCanNotGo) {
  const int64_t collection = AddCollection("c");
  AddDocument(collection, "d");
  EXPECT_TRUE(absl::IsFailedPrecondition(
      registry_->Write([&](Sql& sql) { return DeleteCollectionRow(sql, collection); })));
}

INSTANTIATE_TEST_SUITE_P(All, RegistryConformanceTest, store_test::AllRegistries(),
                         [](const auto& maker) { return maker.param.name; });

}  // namespace
}  // namespace docmem::store
