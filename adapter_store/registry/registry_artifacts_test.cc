// Caches, adapters, files and intents in the registry.

#include "adapter_store/registry/artifact_tables.h"
#include "adapter_store/registry/intent_table.h"
#include "adapter_store/registry/store_totals.h"
#include "adapter_store/testing/registry_fixture.h"

namespace docmem::store {
namespace {

using store_test::Hash;
using store_test::RegistryConformanceTest;

TEST_P(RegistryConformanceTest, ArtifactsKeepAllColumnsAndGoWithTheirDocument) {
  const int64_t document = AddDocument(AddCollection("c"), "d");
  CacheRow cache{0, document, {}, kNow};
  cache.spec = {Hash(1),   {{"a", "b"}, {"\xC3\xBC", ""}},
                900000,    "compactor",
                "float32", Hash(2),
                Hash(3),   Hash(4),
                "system",  10,
                100,       19,
                4096,      65536};
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
    EXPECT_EQ(spec.system_text, "system");
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

}  // namespace
}  // namespace docmem::store
