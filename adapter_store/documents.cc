#include <charconv>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapter_store/document_rows.h"
#include "adapter_store/errors.h"
#include "adapter_store/files/digest.h"
#include "adapter_store/files/text_codec.h"
#include "adapter_store/names.h"
#include "adapter_store/page_token.h"
#include "adapter_store/registry/word_table.h"
#include "adapter_store/status_macros.h"
#include "adapter_store/store_impl.h"

namespace docmem::store {
namespace {

absl::Status Changed(const DocumentKey& key, const char* how) {
  return StoreError(
      absl::StatusCode::kAborted, reason::kRevisionMismatch,
      absl::StrCat("document '", key.id, "' was ", how, " meanwhile; read it again and repeat"));
}

// May the document be built from this text now?
absl::Status CheckBegin(const DocumentRow& row, const DocumentSpec& spec, uint64_t replaces) {
  if (row.damaged || row.state == DocumentState::kQuarantined) {
    return StoreError(absl::StatusCode::kDataLoss, reason::kDocumentQuarantined,
                      absl::StrCat("document '", row.name, "' is quarantined; delete it first"));
  }
  if (row.state == DocumentState::kFailed || row.spec.text_sha256 == spec.text_sha256) {
    return absl::OkStatus();
  }
  if (replaces == 0) {
    return StoreError(absl::StatusCode::kAlreadyExists, reason::kDocumentExists,
                      absl::StrCat("document '", row.name,
                                   "' exists with another text; replace it by naming its "
                                   "revision ",
                                   row.revision),
                      {{"revision", absl::StrCat(row.revision)}});
  }
  if (row.state == DocumentState::kReady) return CheckRevision(replaces, row.revision);
  return StoreError(absl::StatusCode::kAborted, reason::kRevisionMismatch,
                    absl::StrCat("document '", row.name, "' is being built from another text"),
                    {{"revision", absl::StrCat(row.revision)}});
}

absl::Status CheckPublish(const DocumentRow& row, const DocumentPublication& publication) {
  if (row.id != publication.row) return Changed(publication.key, "deleted");
  if (publication.replaces != 0) {
    STORE_RETURN_IF_ERROR(CheckRevision(publication.replaces, row.revision));
    if (row.state == DocumentState::kReady) return absl::OkStatus();
  } else if (row.state == DocumentState::kBuilding &&
             row.spec.text_sha256 == publication.spec.text_sha256) {
    return absl::OkStatus();
  }
  return Changed(publication.key, "changed");
}

// Text, caches and currency of the adapters belong to the text that goes.
absl::Status RetireText(Sql& sql, DocumentRow& row, const DocumentSpec& spec,
                        std::vector<IntentFile>& deleted) {
  STORE_RETURN_IF_ERROR(DoomFiles(sql, row.id, 0, 0, deleted));
  STORE_RETURN_IF_ERROR(DeleteWords(sql, row.id));
  STORE_ASSIGN_OR_RETURN(const std::vector<CacheRow> caches, CachesOf(sql, row.id));
  for (const CacheRow& cache : caches) {
    STORE_RETURN_IF_ERROR(RemoveCache(sql, row, cache, deleted));
  }
  STORE_ASSIGN_OR_RETURN(std::vector<AdapterRow> adapters,
                         AdaptersOf(sql, row.id, row.last_adapter + 1, row.last_adapter + 1));
  for (AdapterRow& adapter : adapters) {
    adapter.state = AdapterState::kStale;
    STORE_RETURN_IF_ERROR(UpdateAdapterRow(sql, adapter));
  }
  row.current_adapter = 0;
  row.evaluation.clear();
  row.spec = spec;
  return ReplaceLabels(sql, row.id, spec.labels);
}

std::string ListName(const std::string& collection, const DocumentQuery& query) {
  std::string name =
      absl::StrCat("documents/", collection, "/", static_cast<int>(query.order), query.descending);
  for (const auto& [key, value] : query.labels) {
    absl::StrAppend(&name, "/", key, "=", value.size(), ":", value);
  }
  return name;
}

absl::StatusOr<std::optional<SqlValue>> PositionOf(const std::string& list, DocumentOrder order,
                                                   const std::string& token) {
  if (token.empty()) return std::optional<SqlValue>();
  STORE_ASSIGN_OR_RETURN(const std::string key, ReadPageToken(list, token));
  if (order == DocumentOrder::kId) return std::optional<SqlValue>(key);
  int64_t id = 0;
  std::from_chars(key.data(), key.data() + key.size(), id);
  return std::optional<SqlValue>(id);
}

absl::Status CheckEdit(const DocumentEdit& edit) {
  DocumentSpec spec;
  spec.text_sha256 = std::string(64, '0');
  spec.title = edit.title.value_or("");
  spec.labels = edit.labels.value_or(Labels());
  return CheckSpec(spec);
}

absl::Status SetDefaultCache(Sql& sql, DocumentRow& row, const std::string& cache_id) {
  STORE_ASSIGN_OR_RETURN(const std::vector<CacheRow> caches, CachesOf(sql, row.id));
  for (const CacheRow& cache : caches) {
    if (cache.spec.id != cache_id) continue;
    row.default_cache_id = cache_id;
    return absl::OkStatus();
  }
  return StoreError(absl::StatusCode::kNotFound, reason::kCacheNotFound,
                    absl::StrCat("document '", row.name, "' has no such cache"));
}

}  // namespace

absl::StatusOr<Document> StoreImpl::BeginDocument(const DocumentKey& key, const DocumentSpec& spec,
                                                  uint64_t replaces) {
  STORE_RETURN_IF_ERROR(CheckKey(key));
  STORE_RETURN_IF_ERROR(CheckSpec(spec));
  Document document;
  STORE_RETURN_IF_ERROR(registry().Write([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const CollectionRow collection, RequireCollection(sql, key.collection));
    STORE_ASSIGN_OR_RETURN(std::optional<DocumentRow> row,
                           FindDocument(sql, collection.id, key.id));
    if (row.has_value()) STORE_RETURN_IF_ERROR(CheckBegin(*row, spec, replaces));
    if (!row.has_value()) {
      STORE_RETURN_IF_ERROR(CheckQuota(sql, collection, 1, 0));
      row.emplace();
      row->collection_id = collection.id;
      row->name = key.id;
      row->builder = parts_.instance;
      row->spec = spec;
      row->created = row->updated = Now();
      STORE_ASSIGN_OR_RETURN(row->id, InsertDocument(sql, *row));
    } else if (row->state == DocumentState::kFailed) {
      row->state = DocumentState::kBuilding;
      row->state_reason.clear();
      row->builder = parts_.instance;
      row->spec = spec;
      STORE_RETURN_IF_ERROR(ReplaceLabels(sql, row->id, spec.labels));
      STORE_RETURN_IF_ERROR(TouchDocument(sql, *row, Now()));
    }
    STORE_ASSIGN_OR_RETURN(document, LoadDocument(sql, *row, key.collection));
    return absl::OkStatus();
  }));
  return document;
}

absl::StatusOr<Document> StoreImpl::PublishDocument(const DocumentPublication& publication) {
  STORE_RETURN_IF_ERROR(CheckKey(publication.key));
  STORE_RETURN_IF_ERROR(CheckSpec(publication.spec));
  for (const NewCache& cache : publication.caches) STORE_RETURN_IF_ERROR(CheckSpec(cache.spec));
  STORE_RETURN_IF_ERROR(registry().Read([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const DocumentRow row, RequireDocument(sql, publication.key));
    return CheckPublish(row, publication);
  }));

  const bool keep_text = publication.text.has_value() && publication.retain_text;
  const std::string frame = keep_text ? CompressText(*publication.text) : "";
  const NewFile text = FileFromMemory(kTextFileName, std::as_bytes(std::span<const char>(frame)));
  std::vector<PlannedFile> planned;
  planned.reserve(publication.caches.size() + 1);
  for (const NewCache& cache : publication.caches) {
    planned.push_back({&cache.file, ArtifactKind::kCache});
  }
  if (keep_text) planned.push_back({&text, ArtifactKind::kText});
  STORE_ASSIGN_OR_RETURN(std::unique_ptr<WrittenBatch> batch, parts_.publisher->Write(planned));
  Prepared prepared{batch->files(), std::nullopt};
  if (publication.text.has_value()) prepared.words = CountText(*publication.text);

  const auto make_rows = [&](Sql& sql, std::vector<IntentFile>& deleted) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(DocumentRow row, RequireDocument(sql, publication.key));
    STORE_RETURN_IF_ERROR(CheckPublish(row, publication));
    if (publication.replaces != 0) {
      STORE_RETURN_IF_ERROR(RetireText(sql, row, publication.spec, deleted));
    }
    return MakeReady(sql, std::move(row), publication, prepared, deleted);
  };
  STORE_RETURN_IF_ERROR(parts_.publisher->Commit(batch.get(), make_rows));
  return GetDocument(publication.key);
}

absl::Status StoreImpl::MakeReady(Sql& sql, DocumentRow row, const DocumentPublication& publication,
                                  const Prepared& prepared, std::vector<IntentFile>& deleted) {
  STORE_ASSIGN_OR_RETURN(const CollectionRow collection,
                         RequireCollection(sql, publication.key.collection));
  const std::vector<StoredFile>& files = prepared.files;
  uint64_t new_bytes = 0;
  for (const StoredFile& file : files) new_bytes += file.bytes;
  STORE_RETURN_IF_ERROR(CheckQuota(sql, collection, 0, new_bytes));
  std::vector<WrittenCache> caches;
  caches.reserve(publication.caches.size());
  for (size_t i = 0; i < publication.caches.size(); ++i) {
    caches.push_back({&publication.caches[i].spec, &files[i]});
  }
  STORE_RETURN_IF_ERROR(AddCaches(sql, row, caches, Now(), deleted).status());
  if (files.size() > caches.size()) {
    STORE_RETURN_IF_ERROR(InsertFile(sql, {files.back(), FileRole::kText, row.id}));
  }
  if (prepared.words.has_value()) {
    STORE_RETURN_IF_ERROR(IndexDocument(sql, collection, row, *prepared.words));
  }
  row.state = DocumentState::kReady;
  row.builder.clear();
  row.document_tokens = publication.document_tokens;
  row.default_cache_id = caches.empty() ? "" : caches.front().spec->id;
  return TouchDocument(sql, row, Now());
}

absl::Status StoreImpl::FailDocument(const DocumentKey& key, int64_t row_id,
                                     const std::string& why) {
  STORE_RETURN_IF_ERROR(CheckKey(key));
  return parts_.publisher->Delete([&](Sql& sql, std::vector<IntentFile>&) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(std::optional<DocumentRow> row, FindDocumentById(sql, row_id));
    if (!row.has_value() || row->damaged || row->state != DocumentState::kBuilding) {
      return absl::OkStatus();
    }
    row->state = DocumentState::kFailed;
    row->state_reason = StorableReason(why);
    row->builder.clear();
    return TouchDocument(sql, *row, Now());
  });
}

absl::StatusOr<Document> StoreImpl::GetDocument(const DocumentKey& key) {
  STORE_RETURN_IF_ERROR(CheckKey(key));
  Document document;
  STORE_RETURN_IF_ERROR(registry().Read([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const DocumentRow row, RequireDocument(sql, key));
    STORE_ASSIGN_OR_RETURN(document, LoadDocument(sql, row, key.collection));
    return absl::OkStatus();
  }));
  return document;
}

absl::StatusOr<Page<Document>> StoreImpl::ListDocuments(const std::string& collection,
                                                        const DocumentQuery& query,
                                                        const PageRequest& page) {
  STORE_RETURN_IF_ERROR(CheckId("collection", collection));
  STORE_RETURN_IF_ERROR(CheckLabels(query.labels));
  STORE_RETURN_IF_ERROR(CheckPage(page));
  const std::string list = ListName(collection, query);
  DocumentRange range{.query = query, .limit = page.size + 1};
  STORE_ASSIGN_OR_RETURN(range.after, PositionOf(list, query.order, page.token));
  Page<Document> result;
  STORE_RETURN_IF_ERROR(registry().Read([&](Sql& sql) -> absl::Status {
    result = {};
    STORE_ASSIGN_OR_RETURN(const CollectionRow owner, RequireCollection(sql, collection));
    range.collection_id = owner.id;
    STORE_ASSIGN_OR_RETURN(std::vector<DocumentRow> rows, ListDocumentRows(sql, range));
    const bool more = rows.size() > page.size;
    if (more) rows.pop_back();
    for (const DocumentRow& row : rows) {
      STORE_ASSIGN_OR_RETURN(Document document, LoadDocument(sql, row, collection));
      result.items.push_back(std::move(document));
    }
    if (!more) return absl::OkStatus();
    const DocumentRow& last = rows.back();
    const bool by_id = query.order == DocumentOrder::kId;
    result.next_token = MakePageToken(list, by_id ? last.name : absl::StrCat(last.id));
    return absl::OkStatus();
  }));
  return result;
}

absl::StatusOr<Document> StoreImpl::UpdateDocument(const DocumentKey& key, uint64_t revision,
                                                   const DocumentEdit& edit) {
  STORE_RETURN_IF_ERROR(CheckKey(key));
  STORE_RETURN_IF_ERROR(CheckEdit(edit));
  STORE_RETURN_IF_ERROR(parts_.publisher->Commit(
      nullptr, [&](Sql& sql, std::vector<IntentFile>& deleted) -> absl::Status {
        STORE_ASSIGN_OR_RETURN(DocumentRow row, RequireDocument(sql, key));
        STORE_RETURN_IF_ERROR(CheckRevision(revision, row.revision));
        if (row.damaged || row.state == DocumentState::kQuarantined) {
          return CheckBegin(row, row.spec, 0);
        }
        if (edit.title.has_value()) {
          row.spec.title = *edit.title;
          STORE_RETURN_IF_ERROR(IndexTitle(sql, row));
        }
        if (edit.pinned.has_value()) row.spec.pinned = *edit.pinned;
        if (edit.evaluation.has_value()) row.evaluation = *edit.evaluation;
        if (edit.labels.has_value()) {
          STORE_RETURN_IF_ERROR(ReplaceLabels(sql, row.id, *edit.labels));
        }
        if (edit.default_cache_id.has_value()) {
          STORE_RETURN_IF_ERROR(SetDefaultCache(sql, row, *edit.default_cache_id));
        }
        if (edit.drop_text) STORE_RETURN_IF_ERROR(DoomFiles(sql, row.id, 0, 0, deleted));
        return TouchDocument(sql, row, Now());
      }));
  return GetDocument(key);
}

absl::Status StoreImpl::DeleteDocument(const DocumentKey& key, uint64_t revision) {
  STORE_RETURN_IF_ERROR(CheckKey(key));
  return parts_.publisher->Delete([&](Sql& sql, std::vector<IntentFile>& deleted) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const DocumentRow row, RequireDocument(sql, key));
    STORE_RETURN_IF_ERROR(CheckRevision(revision, row.revision));
    return RemoveDocument(sql, row.id, deleted);
  });
}

}  // namespace docmem::store
