#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapter_store/document_rows.h"
#include "adapter_store/errors.h"
#include "adapter_store/names.h"
#include "adapter_store/status_macros.h"
#include "adapter_store/store_impl.h"

namespace docmem::store {
namespace {

absl::StatusOr<DocumentRow> RequireText(Sql& sql, const DocumentKey& key,
                                        const std::string& text_sha256) {
  STORE_ASSIGN_OR_RETURN(DocumentRow row, RequireReadyDocument(sql, key));
  if (row.spec.text_sha256 == text_sha256) return row;
  return StoreError(absl::StatusCode::kAborted, reason::kRevisionMismatch,
                    absl::StrCat("the text of document '", key.id,
                                 "' was replaced while the cache was built; build it again"));
}

// Those that the document already has undamaged needn't be written.
std::vector<const NewCache*> Missing(const Document& document,
                                     const std::vector<NewCache>& caches) {
  std::vector<const NewCache*> missing;
  for (const NewCache& cache : caches) {
    const bool there = std::any_of(
        document.caches.begin(), document.caches.end(),
        [&](const Cache& old) { return old.spec.id == cache.spec.id && !old.file.quarantined; });
    if (!there) missing.push_back(&cache);
  }
  return missing;
}

}  // namespace

absl::StatusOr<Document> StoreImpl::PublishCaches(const DocumentKey& key,
                                                  const std::string& text_sha256,
                                                  const std::vector<NewCache>& caches) {
  STORE_RETURN_IF_ERROR(CheckKey(key));
  for (const NewCache& cache : caches) STORE_RETURN_IF_ERROR(CheckSpec(cache.spec));
  Document document;
  STORE_RETURN_IF_ERROR(registry().Read([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const DocumentRow row, RequireText(sql, key, text_sha256));
    STORE_ASSIGN_OR_RETURN(document, LoadDocument(sql, row, key.collection));
    return absl::OkStatus();
  }));
  const std::vector<const NewCache*> missing = Missing(document, caches);
  if (missing.empty()) return document;
  std::vector<PlannedFile> planned;
  planned.reserve(missing.size());
  for (const NewCache* cache : missing) planned.push_back({&cache->file, ArtifactKind::kCache});
  STORE_ASSIGN_OR_RETURN(std::unique_ptr<WrittenBatch> batch, parts_.publisher->Write(planned));

  const auto make_rows = [&](Sql& sql, std::vector<IntentFile>& deleted) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(DocumentRow row, RequireText(sql, key, text_sha256));
    STORE_ASSIGN_OR_RETURN(const CollectionRow collection, RequireCollection(sql, key.collection));
    std::vector<WrittenCache> written;
    uint64_t new_bytes = 0;
    for (size_t i = 0; i < missing.size(); ++i) {
      STORE_RETURN_IF_ERROR(RequireMakers(sql, row, missing[i]->spec));
      written.push_back({&missing[i]->spec, &batch->files()[i]});
      new_bytes += batch->files()[i].bytes;
    }
    STORE_RETURN_IF_ERROR(CheckQuota(sql, collection, 0, new_bytes));
    STORE_ASSIGN_OR_RETURN(const uint32_t added, AddCaches(sql, row, written, Now(), deleted));
    if (row.default_cache_id.empty()) row.default_cache_id = written.front().spec->id;
    return added == 0 ? absl::OkStatus() : TouchDocument(sql, row, Now());
  };
  STORE_RETURN_IF_ERROR(parts_.publisher->Commit(batch.get(), make_rows));
  return GetDocument(key);
}

absl::Status StoreImpl::DeleteCache(const DocumentKey& key, const std::string& cache_id) {
  STORE_RETURN_IF_ERROR(CheckKey(key));
  return parts_.publisher->Delete([&](Sql& sql, std::vector<IntentFile>& deleted) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(DocumentRow row, RequireReadyDocument(sql, key));
    STORE_ASSIGN_OR_RETURN(const std::vector<CacheRow> caches, CachesOf(sql, row.id));
    for (const CacheRow& cache : caches) {
      if (cache.spec.id != cache_id) continue;
      STORE_RETURN_IF_ERROR(RemoveCache(sql, row, cache, deleted));
      return TouchDocument(sql, row, Now());
    }
    return StoreError(absl::StatusCode::kNotFound, reason::kCacheNotFound,
                      absl::StrCat("document '", key.id, "' has no such cache"));
  });
}

}  // namespace docmem::store
