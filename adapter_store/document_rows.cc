#include "adapter_store/document_rows.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapter_store/errors.h"
#include "adapter_store/names.h"
#include "adapter_store/registry/word_table.h"
#include "adapter_store/status_macros.h"

namespace docmem::store {
namespace {

constexpr uint32_t kAll = std::numeric_limits<int32_t>::max();

IntentFile Doomed(const StoredFile& file) { return {file.id, file.kind}; }

absl::Status QuarantinedError(const DocumentRow& row) {
  return StoreError(absl::StatusCode::kDataLoss, reason::kDocumentQuarantined,
                    absl::StrCat("document '", row.name,
                                 "' is quarantined because of damage in the registry; delete it "
                                 "and ingest it again"));
}

// Values of a damaged row could be anything: only the address and the numbers are given on.
void Blank(Document& document) {
  document.state = DocumentState::kQuarantined;
  document.state_reason = "its registry row is damaged";
  document.spec = DocumentSpec();
  document.evaluation.clear();
  document.default_cache_id.clear();
}

}  // namespace

absl::StatusOr<CollectionRow> RequireCollection(Sql& sql, const std::string& name) {
  STORE_ASSIGN_OR_RETURN(std::optional<CollectionRow> row, FindCollection(sql, name));
  if (row.has_value()) return *std::move(row);
  return StoreError(absl::StatusCode::kNotFound, reason::kCollectionNotFound,
                    absl::StrCat("there is no collection '", name, "'"));
}

absl::StatusOr<DocumentRow> RequireDocument(Sql& sql, const DocumentKey& key) {
  STORE_ASSIGN_OR_RETURN(const CollectionRow collection, RequireCollection(sql, key.collection));
  STORE_ASSIGN_OR_RETURN(std::optional<DocumentRow> row, FindDocument(sql, collection.id, key.id));
  if (row.has_value()) return *std::move(row);
  return StoreError(
      absl::StatusCode::kNotFound, reason::kDocumentNotFound,
      absl::StrCat("there is no document '", key.id, "' in collection '", key.collection, "'"));
}

absl::Status RequireReady(const DocumentRow& row) {
  if (row.damaged || row.state == DocumentState::kQuarantined) return QuarantinedError(row);
  if (row.state == DocumentState::kReady) return absl::OkStatus();
  const bool building = row.state == DocumentState::kBuilding;
  return StoreError(absl::StatusCode::kFailedPrecondition, reason::kDocumentNotReady,
                    building ? absl::StrCat("document '", row.name, "' is still being built")
                             : absl::StrCat("the ingestion of document '", row.name,
                                            "' failed: ", row.state_reason));
}

absl::StatusOr<DocumentRow> RequireReadyDocument(Sql& sql, const DocumentKey& key) {
  STORE_ASSIGN_OR_RETURN(DocumentRow row, RequireDocument(sql, key));
  STORE_RETURN_IF_ERROR(RequireReady(row));
  return row;
}

absl::Status CheckRevision(uint64_t expected, uint64_t actual) {
  if (expected == 0 || expected == actual) return absl::OkStatus();
  return StoreError(absl::StatusCode::kAborted, reason::kRevisionMismatch,
                    absl::StrCat("the revision is ", actual, ", not ", expected,
                                 "; read it again and repeat the change"),
                    {{"revision", absl::StrCat(actual)}});
}

absl::Status CheckQuota(Sql& sql, const CollectionRow& collection, uint64_t new_documents,
                        uint64_t new_bytes) {
  const CollectionLimits& limits = collection.settings.limits;
  if (limits.max_documents == 0 && limits.max_bytes == 0) return absl::OkStatus();
  STORE_ASSIGN_OR_RETURN(const CollectionUsage usage, UsageOfCollection(sql, collection.id));
  const auto exceeded = [&](const char* reason_name, const char* what, uint64_t limit,
                            uint64_t used) {
    return StoreError(absl::StatusCode::kResourceExhausted, reason_name,
                      absl::StrCat("collection '", collection.name, "' has ", used, " of at most ",
                                   limit, " ", what, "; delete documents or raise its limit"),
                      {{"limit", absl::StrCat(limit)}, {"used", absl::StrCat(used)}});
  };
  if (new_documents > 0 && limits.max_documents != 0 &&
      usage.documents + new_documents > limits.max_documents) {
    return exceeded(reason::kQuotaMaxDocuments, "documents", limits.max_documents, usage.documents);
  }
  if (new_bytes > 0 && limits.max_bytes != 0 && usage.bytes + new_bytes > limits.max_bytes) {
    return exceeded(reason::kQuotaMaxBytes, "bytes", limits.max_bytes, usage.bytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<Document> LoadDocument(Sql& sql, const DocumentRow& row,
                                      const std::string& collection) {
  Document document;
  document.key = {collection, row.name};
  document.row = row.id;
  document.state = row.state;
  document.state_reason = row.state_reason;
  document.spec = row.spec;
  document.document_tokens = row.document_tokens;
  document.default_cache_id = row.default_cache_id;
  document.current_adapter_version = row.current_adapter;
  document.evaluation = row.evaluation;
  document.revision = row.revision;
  document.created = row.created;
  document.updated = row.updated;
  STORE_ASSIGN_OR_RETURN(document.spec.labels, LabelsOf(sql, row.id));
  STORE_ASSIGN_OR_RETURN(const std::vector<CacheRow> caches, CachesOf(sql, row.id));
  STORE_ASSIGN_OR_RETURN(const std::vector<AdapterRow> adapters,
                         AdaptersOf(sql, row.id, kAll, kAll));
  STORE_ASSIGN_OR_RETURN(const std::vector<FileRow> files, FilesOf(sql, row.id));
  document.adapter_count = static_cast<uint32_t>(adapters.size());
  bool damaged = row.damaged || !CheckLabels(document.spec.labels).ok();
  for (const AdapterRow& adapter : adapters) damaged = damaged || adapter.damaged;
  std::map<int64_t, const FileRow*> cache_files;
  for (const FileRow& file : files) {
    damaged = damaged || SpoilsDocument(file);
    document.stored_bytes += file.file.bytes;
    if (file.cache_id != 0) cache_files[file.cache_id] = &file;
    if (file.role == FileRole::kText) document.text = file.file;
  }
  for (const CacheRow& cache : caches) {
    const auto file = cache_files.find(cache.id);
    damaged = damaged || cache.damaged || file == cache_files.end();
    if (cache.damaged || file == cache_files.end()) continue;
    document.caches.push_back({cache.spec, file->second->file, cache.created});
  }
  if (damaged) Blank(document);
  return document;
}

absl::StatusOr<Adapter> LoadAdapter(Sql& sql, const AdapterRow& row, const DocumentRow& document,
                                    const DocumentKey& key) {
  if (row.damaged) return QuarantinedError(document);
  Adapter adapter;
  adapter.document = key;
  adapter.version = row.version;
  adapter.spec = row.spec;
  adapter.state = row.state;
  adapter.current = document.current_adapter == row.version;
  adapter.created = row.created;
  STORE_ASSIGN_OR_RETURN(const std::vector<FileRow> files, FilesOf(sql, row.document_id));
  for (const FileRow& file : files) {
    if (file.adapter_id != row.id) continue;
    if (file.role == FileRole::kAdapterPacked) {
      adapter.packed = file.file;
    } else {
      adapter.files.push_back(file.file);
    }
  }
  std::sort(adapter.files.begin(), adapter.files.end(),
            [](const StoredFile& a, const StoredFile& b) { return a.name < b.name; });
  return adapter;
}

absl::Status TouchDocument(Sql& sql, DocumentRow& row, absl::Time now) {
  ++row.revision;
  row.updated = now;
  return UpdateDocumentRow(sql, row);
}

absl::StatusOr<uint32_t> AddCaches(Sql& sql, const DocumentRow& document,
                                   const std::vector<WrittenCache>& caches, absl::Time now,
                                   std::vector<IntentFile>& deleted) {
  uint32_t added = 0;
  for (const WrittenCache& cache : caches) {
    STORE_ASSIGN_OR_RETURN(const std::vector<CacheRow> rows, CachesOf(sql, document.id));
    STORE_ASSIGN_OR_RETURN(const std::vector<FileRow> files, FilesOf(sql, document.id));
    const auto old = std::find_if(rows.begin(), rows.end(), [&](const CacheRow& row) {
      return row.spec.id == cache.spec->id;
    });
    if (old != rows.end()) {
      const bool intact = std::any_of(files.begin(), files.end(), [&](const FileRow& file) {
        return file.cache_id == old->id && !file.file.quarantined;
      });
      if (intact) {
        deleted.push_back(Doomed(*cache.file));
        continue;
      }
      STORE_RETURN_IF_ERROR(DoomFiles(sql, document.id, old->id, 0, deleted));
      STORE_RETURN_IF_ERROR(DeleteCacheRow(sql, old->id));
    }
    STORE_ASSIGN_OR_RETURN(const int64_t id, InsertCache(sql, {0, document.id, *cache.spec, now}));
    STORE_RETURN_IF_ERROR(InsertFile(sql, {*cache.file, FileRole::kCache, document.id, id}));
    ++added;
  }
  return added;
}

absl::Status RequireMakers(Sql& sql, const DocumentRow& document, const CacheSpec& spec) {
  for (const std::string& hash : {spec.writer_adapter_hash, spec.scorer_adapter_hash}) {
    if (hash.empty()) continue;
    STORE_ASSIGN_OR_RETURN(const std::optional<AdapterRow> adapter,
                           FindAdapterByHash(sql, document.id, hash));
    if (adapter.has_value()) continue;
    return StoreError(absl::StatusCode::kNotFound, reason::kAdapterNotFound,
                      absl::StrCat("document '", document.name, "' has no adapter ", hash,
                                   ", which made the cache; it was deleted meanwhile"));
  }
  return absl::OkStatus();
}

absl::Status InsertAdapterFiles(Sql& sql, const AdapterRow& row,
                                const std::vector<StoredFile>& files) {
  for (const StoredFile& file : files) {
    const bool packed = &file == &files.back();
    STORE_RETURN_IF_ERROR(
        InsertFile(sql, {file, packed ? FileRole::kAdapterPacked : FileRole::kAdapterFile,
                         row.document_id, 0, row.id}));
  }
  return absl::OkStatus();
}

absl::Status IndexDocument(Sql& sql, const CollectionRow& collection, const DocumentRow& row,
                           const TextWords& words) {
  if (!collection.settings.lexical_index) return absl::OkStatus();
  return InsertWords(sql, collection.id, row.id, words, CountTitle(row.spec.title));
}

absl::Status IndexTitle(Sql& sql, const DocumentRow& row) {
  return PutTitleWords(sql, row.id, CountTitle(row.spec.title));
}

absl::Status RemoveCache(Sql& sql, DocumentRow& document, const CacheRow& cache,
                         std::vector<IntentFile>& deleted) {
  STORE_RETURN_IF_ERROR(DoomFiles(sql, document.id, cache.id, 0, deleted));
  STORE_RETURN_IF_ERROR(DeleteCacheRow(sql, cache.id));
  if (document.default_cache_id != cache.spec.id) return absl::OkStatus();
  STORE_ASSIGN_OR_RETURN(const std::vector<CacheRow> left, CachesOf(sql, document.id));
  document.default_cache_id = left.empty() ? "" : left.front().spec.id;
  return absl::OkStatus();
}

absl::Status DoomFiles(Sql& sql, int64_t document_id, int64_t cache_id, int64_t adapter_id,
                       std::vector<IntentFile>& deleted) {
  STORE_ASSIGN_OR_RETURN(const std::vector<FileRow> files, FilesOf(sql, document_id));
  for (const FileRow& file : files) {
    if (file.cache_id != cache_id || file.adapter_id != adapter_id || file.job_id != 0) continue;
    deleted.push_back(Doomed(file.file));
    STORE_RETURN_IF_ERROR(DeleteFileRow(sql, file.file.id));
  }
  return absl::OkStatus();
}

absl::Status DoomCheckpoint(Sql& sql, int64_t job_id, std::vector<IntentFile>& deleted) {
  STORE_ASSIGN_OR_RETURN(const std::vector<FileRow> files, FilesOfJob(sql, job_id));
  for (const FileRow& file : files) {
    deleted.push_back(Doomed(file.file));
    STORE_RETURN_IF_ERROR(DeleteFileRow(sql, file.file.id));
  }
  return absl::OkStatus();
}

bool SpoilsDocument(const FileRow& file) { return file.damaged && file.job_id == 0; }

absl::Status RemoveDocument(Sql& sql, int64_t document_id, std::vector<IntentFile>& deleted) {
  STORE_ASSIGN_OR_RETURN(const std::vector<FileRow> files, FilesOf(sql, document_id));
  for (const FileRow& file : files) deleted.push_back(Doomed(file.file));
  return DeleteDocumentRow(sql, document_id);
}

}  // namespace docmem::store
