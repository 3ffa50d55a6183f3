#include <charconv>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapter_store/document_rows.h"
#include "adapter_store/errors.h"
#include "adapter_store/names.h"
#include "adapter_store/page_token.h"
#include "adapter_store/status_macros.h"
#include "adapter_store/store_impl.h"

namespace docmem::store {
namespace {

constexpr uint32_t kNewest = std::numeric_limits<int32_t>::max();

absl::Status CheckFiles(const AdapterPublication& publication) {
  std::set<std::string> names;
  for (const NewFile& file : publication.files) {
    STORE_RETURN_IF_ERROR(CheckFileName(file.name));
    if (names.insert(file.name).second) continue;
    return StoreError(absl::StatusCode::kInvalidArgument, reason::kInvalidField,
                      "an adapter's files must have distinct names", {{"field", "file name"}});
  }
  return absl::OkStatus();
}

absl::Status NoAdapter(const DocumentKey& key, const std::string& which) {
  return StoreError(absl::StatusCode::kNotFound, reason::kAdapterNotFound,
                    absl::StrCat("document '", key.id, "' has no ", which));
}

absl::StatusOr<AdapterRow> RequireAdapter(Sql& sql, const DocumentRow& document,
                                          const DocumentKey& key, uint32_t version) {
  STORE_ASSIGN_OR_RETURN(std::optional<AdapterRow> row, FindAdapter(sql, document.id, version));
  if (row.has_value()) return *std::move(row);
  return NoAdapter(key, absl::StrCat("adapter of version ", version));
}

// The version that has this content already, if any.
absl::StatusOr<std::optional<Adapter>> FindContent(Sql& sql, const DocumentRow& document,
                                                   const AdapterPublication& publication) {
  STORE_ASSIGN_OR_RETURN(const std::optional<AdapterRow> row,
                         FindAdapterByHash(sql, document.id, publication.spec.hash));
  if (!row.has_value()) return std::optional<Adapter>();
  STORE_ASSIGN_OR_RETURN(Adapter adapter, LoadAdapter(sql, *row, document, publication.document));
  return std::optional<Adapter>(std::move(adapter));
}

}  // namespace

uint64_t Adapter::stored_bytes() const {
  uint64_t bytes = packed.bytes;
  for (const StoredFile& file : files) bytes += file.bytes;
  return bytes;
}

bool Adapter::quarantined() const {
  for (const StoredFile& file : files) {
    if (file.quarantined) return true;
  }
  return packed.quarantined;
}

absl::StatusOr<Adapter> StoreImpl::PublishAdapter(const AdapterPublication& publication) {
  const DocumentKey& key = publication.document;
  STORE_RETURN_IF_ERROR(CheckKey(key));
  STORE_RETURN_IF_ERROR(CheckSpec(publication.spec));
  STORE_RETURN_IF_ERROR(CheckFiles(publication));
  bool write = true;
  STORE_RETURN_IF_ERROR(registry().Read([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const DocumentRow row, RequireReadyDocument(sql, key));
    STORE_ASSIGN_OR_RETURN(const std::optional<Adapter> old, FindContent(sql, row, publication));
    write = !old.has_value() || old->quarantined();
    return absl::OkStatus();
  }));
  std::unique_ptr<WrittenBatch> batch;
  if (write) {
    std::vector<PlannedFile> planned;
    planned.reserve(publication.files.size() + 1);
    for (const NewFile& file : publication.files) {
      planned.push_back({&file, ArtifactKind::kAdapter});
    }
    planned.push_back({&publication.packed, ArtifactKind::kAdapter});
    STORE_ASSIGN_OR_RETURN(batch, parts_.publisher->Write(planned));
  }
  uint32_t version = 0;
  const auto make_rows = [&](Sql& sql, std::vector<IntentFile>& deleted) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(DocumentRow row, RequireReadyDocument(sql, key));
    const std::vector<StoredFile> none;
    STORE_ASSIGN_OR_RETURN(version, AddAdapter(sql, row, publication,
                                               batch == nullptr ? none : batch->files(), deleted));
    return absl::OkStatus();
  };
  STORE_RETURN_IF_ERROR(parts_.publisher->Commit(batch.get(), make_rows));
  return GetAdapter(key, version);
}

absl::StatusOr<uint32_t> StoreImpl::AddAdapter(Sql& sql, DocumentRow& document,
                                               const AdapterPublication& publication,
                                               const std::vector<StoredFile>& files,
                                               std::vector<IntentFile>& deleted) {
  STORE_ASSIGN_OR_RETURN(std::optional<AdapterRow> row,
                         FindAdapterByHash(sql, document.id, publication.spec.hash));
  STORE_ASSIGN_OR_RETURN(const std::optional<Adapter> old, FindContent(sql, document, publication));
  const bool intact = old.has_value() && !old->quarantined();
  if (!intact && files.empty()) {
    return absl::AbortedError("the adapter was deleted while it was uploaded again; repeat it");
  }
  if (intact) {
    for (const StoredFile& file : files) deleted.push_back({file.id, file.kind});
  } else {
    STORE_ASSIGN_OR_RETURN(const CollectionRow collection,
                           RequireCollection(sql, publication.document.collection));
    uint64_t new_bytes = 0;
    for (const StoredFile& file : files) new_bytes += file.bytes;
    STORE_RETURN_IF_ERROR(CheckQuota(sql, collection, 0, new_bytes));
    if (row.has_value()) {
      STORE_RETURN_IF_ERROR(DoomFiles(sql, document.id, 0, row->id, deleted));
    } else {
      row.emplace();
      row->document_id = document.id;
      row->version = ++document.last_adapter;
      row->spec = publication.spec;
      row->created = Now();
      STORE_ASSIGN_OR_RETURN(row->id, InsertAdapter(sql, *row));
    }
    STORE_RETURN_IF_ERROR(InsertAdapterFiles(sql, *row, files));
  }
  const bool switches = publication.make_current && row->state == AdapterState::kReady &&
                        document.current_adapter != row->version;
  if (switches) document.current_adapter = row->version;
  if (switches || !intact) STORE_RETURN_IF_ERROR(TouchDocument(sql, document, Now()));
  return row->version;
}

absl::StatusOr<Adapter> StoreImpl::GetAdapter(const DocumentKey& key, uint32_t version) {
  STORE_RETURN_IF_ERROR(CheckKey(key));
  Adapter adapter;
  STORE_RETURN_IF_ERROR(registry().Read([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const DocumentRow document, RequireDocument(sql, key));
    const uint32_t wanted = version == 0 ? document.current_adapter : version;
    if (wanted == 0) return NoAdapter(key, "current adapter");
    STORE_ASSIGN_OR_RETURN(const AdapterRow row, RequireAdapter(sql, document, key, wanted));
    STORE_ASSIGN_OR_RETURN(adapter, LoadAdapter(sql, row, document, key));
    return absl::OkStatus();
  }));
  return adapter;
}

absl::StatusOr<Page<Adapter>> StoreImpl::ListAdapters(const DocumentKey& key,
                                                      const PageRequest& page) {
  STORE_RETURN_IF_ERROR(CheckKey(key));
  STORE_RETURN_IF_ERROR(CheckPage(page));
  const std::string list = absl::StrCat("adapters/", key.collection, "/", key.id);
  uint32_t before = kNewest;
  if (!page.token.empty()) {
    STORE_ASSIGN_OR_RETURN(const std::string last, ReadPageToken(list, page.token));
    std::from_chars(last.data(), last.data() + last.size(), before);
  }
  Page<Adapter> result;
  STORE_RETURN_IF_ERROR(registry().Read([&](Sql& sql) -> absl::Status {
    result = {};
    STORE_ASSIGN_OR_RETURN(const DocumentRow document, RequireDocument(sql, key));
    STORE_ASSIGN_OR_RETURN(std::vector<AdapterRow> rows,
                           AdaptersOf(sql, document.id, before, page.size + 1));
    const bool more = rows.size() > page.size;
    if (more) rows.pop_back();
    for (const AdapterRow& row : rows) {
      STORE_ASSIGN_OR_RETURN(Adapter adapter, LoadAdapter(sql, row, document, key));
      result.items.push_back(std::move(adapter));
    }
    if (more) result.next_token = MakePageToken(list, absl::StrCat(rows.back().version));
    return absl::OkStatus();
  }));
  return result;
}

absl::StatusOr<CurrentAdapterChange> StoreImpl::SetCurrentAdapter(const DocumentKey& key,
                                                                  uint32_t version,
                                                                  uint64_t revision) {
  STORE_RETURN_IF_ERROR(CheckKey(key));
  CurrentAdapterChange change;
  STORE_RETURN_IF_ERROR(registry().Write([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(DocumentRow document, RequireReadyDocument(sql, key));
    STORE_RETURN_IF_ERROR(CheckRevision(revision, document.revision));
    change = {document.current_adapter, version, document.revision};
    if (version == document.current_adapter) return absl::OkStatus();
    if (version != 0) {
      STORE_ASSIGN_OR_RETURN(const AdapterRow row, RequireAdapter(sql, document, key, version));
      if (row.state == AdapterState::kStale) {
        return StoreError(absl::StatusCode::kFailedPrecondition, reason::kAdapterStale,
                          absl::StrCat("adapter version ", version,
                                       " was made for an earlier text of the document"));
      }
    }
    document.current_adapter = version;
    STORE_RETURN_IF_ERROR(TouchDocument(sql, document, Now()));
    change.document_revision = document.revision;
    return absl::OkStatus();
  }));
  return change;
}

absl::StatusOr<uint32_t> StoreImpl::DeleteAdapter(const DocumentKey& key, uint32_t version) {
  STORE_RETURN_IF_ERROR(CheckKey(key));
  uint32_t deleted_caches = 0;
  STORE_RETURN_IF_ERROR(
      parts_.publisher->Delete([&](Sql& sql, std::vector<IntentFile>& deleted) -> absl::Status {
        deleted_caches = 0;
        STORE_ASSIGN_OR_RETURN(DocumentRow document, RequireReadyDocument(sql, key));
        STORE_ASSIGN_OR_RETURN(const AdapterRow row, RequireAdapter(sql, document, key, version));
        if (document.current_adapter == version) {
          return StoreError(absl::StatusCode::kFailedPrecondition, reason::kAdapterIsCurrent,
                            absl::StrCat("adapter version ", version,
                                         " is the current one; choose another or none first"));
        }
        STORE_ASSIGN_OR_RETURN(const std::vector<CacheRow> caches, CachesOf(sql, document.id));
        for (const CacheRow& cache : caches) {
          if (cache.spec.writer_adapter_hash != row.spec.hash &&
              cache.spec.scorer_adapter_hash != row.spec.hash) {
            continue;
          }
          STORE_RETURN_IF_ERROR(RemoveCache(sql, document, cache, deleted));
          ++deleted_caches;
        }
        STORE_RETURN_IF_ERROR(DoomFiles(sql, document.id, 0, row.id, deleted));
        STORE_RETURN_IF_ERROR(DeleteAdapterRow(sql, row.id));
        return TouchDocument(sql, document, Now());
      }));
  return deleted_caches;
}

}  // namespace docmem::store
