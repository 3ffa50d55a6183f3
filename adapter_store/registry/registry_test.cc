#include "adapter_store/registry/registry.h"

#include <filesystem>
#include <functional>
#include <thread>

#include "adapter_store/registry/artifact_tables.h"
#include "adapter_store/registry/collection_table.h"
#include "adapter_store/registry/document_table.h"
#include "adapter_store/registry/intent_table.h"
#include "adapter_store/registry/store_totals.h"
#include "adapter_store/status_macros.h"
#include "adapter_store/testing/store_test_util.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::Hash;
using store_test::TemporaryFolder;

/// A registry to hold to the contract: `open` opens (again) the one that lives in `folder`.
struct RegistryMaker {
  const char* name;
  std::function<absl::StatusOr<std::unique_ptr<Registry>>(const std::string& folder)> open;
};

std::ostream& operator<<(std::ostream& out, const RegistryMaker& maker) {
  return out << maker.name;
}

class RegistryConformanceTest : public ::testing::TestWithParam<RegistryMaker> {
 protected:
  void SetUp() override { Open(); }

  void Open() {
    registry_.reset();
    auto opened = GetParam().open(folder_.path());
    ASSERT_OK(opened);
    registry_ = *std::move(opened);
  }

  void Write(const std::function<absl::Status(Sql&)>& body) { ASSERT_OK(registry_->Write(body)); }
  void Read(const std::function<absl::Status(Sql&)>& body) { ASSERT_OK(registry_->Read(body)); }

  int64_t AddCollection(const std::string& name) {
    int64_t id = 0;
    Write([&](Sql& sql) -> absl::Status {
      CollectionRow row;
      row.name = name;
      row.created = row.updated = kNow;
      STORE_ASSIGN_OR_RETURN(id, InsertCollection(sql, row));
      return absl::OkStatus();
    });
    return id;
  }

  int64_t AddDocument(int64_t collection, const std::string& name, const Labels& labels = {}) {
    int64_t id = 0;
    Write([&](Sql& sql) -> absl::Status {
      DocumentRow row;
      row.collection_id = collection;
      row.name = name;
      row.spec.text_sha256 = Hash(1);
      row.spec.labels = labels;
      row.created = row.updated = kNow;
      STORE_ASSIGN_OR_RETURN(id, InsertDocument(sql, row));
      return absl::OkStatus();
    });
    return id;
  }

  std::vector<std::string> Names(const DocumentRange& range) {
    std::vector<std::string> names;
    Read([&](Sql& sql) -> absl::Status {
      STORE_ASSIGN_OR_RETURN(const std::vector<DocumentRow> rows, ListDocumentRows(sql, range));
      for (const DocumentRow& row : rows) names.push_back(row.name);
      return absl::OkStatus();
    });
    return names;
  }

  static inline const absl::Time kNow = absl::FromUnixMicros(1700000000123456);
  TemporaryFolder folder_;
  std::unique_ptr<Registry> registry_;
};

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
    EXPECT_TRUE(absl::IsAlreadyExists(InsertCollection(sql, row).status()));
    return absl::OkStatus();
  });
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

TEST_P(RegistryConformanceTest, ArtifactsKeepAllColumnsAndGoWithTheirDocument) {
  const int64_t document = AddDocument(AddCollection("c"), "d");
  CacheRow cache{0, document, {}, kNow};
  cache.spec = {Hash(1),   {{"a", "b"}, {"\xC3\xBC", ""}},
                900000,    "compactor",
                "float32", Hash(2),
                Hash(3),   Hash(4),
                10,        100,
                19,        4096,
                65536};
  AdapterRow adapter{0, document, 3, {}, AdapterState::kStale, kNow};
  adapter.spec = {Hash(7), "scope", "base", "{\"x\":1}", 16, Hash(8), Hash(9), "job", 1234};
  Write([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(cache.id, InsertCache(sql, cache));
    STORE_ASSIGN_OR_RETURN(adapter.id, InsertAdapter(sql, adapter));
    FileRow file{
        {11, ArtifactKind::kCache, "cache", 5, "digest"}, FileRole::kCache, document, cache.id};
    STORE_RETURN_IF_ERROR(InsertFile(sql, file));
    file = {{12, ArtifactKind::kAdapter, "packed", 6, "digest2"},
            FileRole::kAdapterPacked,
            document,
            0,
            adapter.id};
    STORE_RETURN_IF_ERROR(InsertFile(sql, file));
    file = {{13, ArtifactKind::kText, "text.zst", 7, "digest3"}, FileRole::kText, document};
    return InsertFile(sql, file);
  });
  Read([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const std::vector<CacheRow> caches, CachesOf(sql, document));
    const CacheSpec& spec = caches.at(0).spec;
    EXPECT_EQ(spec.id, Hash(1));
    EXPECT_EQ(spec.identity, cache.spec.identity);
    EXPECT_EQ(spec.ratio_ppm, 900000u);
    EXPECT_EQ(spec.profile, "compactor");
    EXPECT_EQ(spec.kv_dtype, "float32");
    EXPECT_EQ(spec.writer_adapter_hash, Hash(2));
    EXPECT_EQ(spec.scorer_adapter_hash, Hash(3));
    EXPECT_EQ(spec.system_text_digest, Hash(4));
    EXPECT_EQ(spec.head_tokens, 10u);
    EXPECT_EQ(spec.context_tokens, 100u);
    EXPECT_EQ(spec.kept_tokens, 19u);
    EXPECT_EQ(spec.device_bytes, 4096u);
    EXPECT_EQ(spec.full_bytes, 65536u);
    EXPECT_EQ(caches[0].created, kNow);
    EXPECT_FALSE(caches[0].damaged);
    STORE_ASSIGN_OR_RETURN(const auto found, FindAdapterByHash(sql, document, Hash(7)));
    EXPECT_EQ(found->version, 3u);
    EXPECT_EQ(found->state, AdapterState::kStale);
    EXPECT_EQ(found->spec.scope, "scope");
    EXPECT_EQ(found->spec.base_model, "base");
    EXPECT_EQ(found->spec.description, "{\"x\":1}");
    EXPECT_EQ(found->spec.max_rank, 16u);
    EXPECT_EQ(found->spec.prompt_format_digest, Hash(8));
    EXPECT_EQ(found->spec.text_digest, Hash(9));
    EXPECT_EQ(found->spec.training_job_id, "job");
    EXPECT_EQ(found->spec.device_bytes, 1234u);
    EXPECT_FALSE(found->damaged);
    STORE_ASSIGN_OR_RETURN(const auto file, FindFile(sql, 12));
    EXPECT_EQ(file->file.kind, ArtifactKind::kAdapter);
    EXPECT_EQ(file->adapter_id, adapter.id);
    EXPECT_EQ(file->file.bytes, 6u);
    EXPECT_FALSE(file->file.quarantined);
    STORE_ASSIGN_OR_RETURN(const StoreTotals totals, TotalsOf(sql));
    EXPECT_EQ(totals.text_bytes, 7u);
    EXPECT_EQ(totals.cache_bytes, 5u);
    EXPECT_EQ(totals.adapter_bytes, 6u);
    EXPECT_EQ(totals.adapters, 1u);
    return absl::OkStatus();
  });
  Write([&](Sql& sql) { return DeleteCacheRow(sql, cache.id); });
  Read([&](Sql& sql) -> absl::Status {
    EXPECT_EQ(AllFileIds(sql)->size(), 2u);
    return absl::OkStatus();
  });
  Write([&](Sql& sql) { return DeleteDocumentRow(sql, document); });
  Read([&](Sql& sql) -> absl::Status {
    EXPECT_TRUE(AllFileIds(sql)->empty());
    EXPECT_EQ(TotalsOf(sql)->adapters, 0u);
    return absl::OkStatus();
  });
}

TEST_P(RegistryConformanceTest, FileIdsAreNeverUsedTwice) {
  std::vector<int64_t> ids;
  for (int round = 0; round < 3; ++round) {
    Write([&](Sql& sql) -> absl::Status {
      Intent intent;
      intent.instance = "me";
      intent.files = {{0, ArtifactKind::kText}, {0, ArtifactKind::kCache}};
      STORE_ASSIGN_OR_RETURN(intent, BeginPublication(sql, intent));
      for (const IntentFile& file : intent.files) ids.push_back(file.id);
      return DeleteIntent(sql, intent.id);
    });
    Open();
  }
  EXPECT_EQ(ids, (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
}

TEST_P(RegistryConformanceTest, IntentsKeepWhoAndWhat) {
  Intent intent;
  intent.action = IntentAction::kPublish;
  intent.instance = "me";
  intent.generation = 4;
  intent.expires = kNow;
  intent.files = {{0, ArtifactKind::kAdapter}};
  Write([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(intent, BeginPublication(sql, intent));
    Intent deletion;
    deletion.action = IntentAction::kDelete;
    deletion.instance = "me";
    deletion.files = {{77, ArtifactKind::kText}};
    STORE_RETURN_IF_ERROR(BeginDeletion(sql, deletion).status());
    return SetIntentAction(sql, intent.id, IntentAction::kDelete);
  });
  Read([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const std::vector<Intent> all, AllIntents(sql));
    EXPECT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].action, IntentAction::kDelete);
    EXPECT_EQ(all[0].generation, 4u);
    EXPECT_EQ(all[0].expires, kNow);
    EXPECT_EQ(all[0].files[0].kind, ArtifactKind::kAdapter);
    EXPECT_EQ(all[1].files[0].id, 77);
    return absl::OkStatus();
  });
}

TEST_P(RegistryConformanceTest, CollectionWithDocumentsCanNotGo) {
  const int64_t collection = AddCollection("c");
  AddDocument(collection, "d");
  EXPECT_TRUE(absl::IsFailedPrecondition(
      registry_->Write([&](Sql& sql) { return DeleteCollectionRow(sql, collection); })));
}

INSTANTIATE_TEST_SUITE_P(All, RegistryConformanceTest,
                         ::testing::Values(RegistryMaker{"Sqlite",
                                                         [](const std::string& folder) {
                                                           return OpenSqliteRegistry(
                                                               folder + "/registry.db");
                                                         }}),
                         [](const auto& maker) { return maker.param.name; });

}  // namespace
}  // namespace docmem::store
