#include "adapter_store/document_import.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapter_store/document_rows.h"
#include "adapter_store/errors.h"
#include "adapter_store/files/text_codec.h"
#include "adapter_store/names.h"
#include "adapter_store/status_macros.h"
#include "adapter_store/store_impl.h"

namespace docmem::store {
namespace {

absl::Status CheckPlace(const DocumentRow& old, uint64_t replaces) {
  if (old.damaged || old.state == DocumentState::kQuarantined) return RequireReady(old);
  if (old.state == DocumentState::kFailed) return absl::OkStatus();
  const ErrorDetails details = {{"revision", absl::StrCat(old.revision)}};
  if (replaces == 0) {
    return StoreError(absl::StatusCode::kAlreadyExists, reason::kDocumentExists,
                      absl::StrCat("document '", old.name,
                                   "' exists; import under another id, or replace it by naming its "
                                   "revision ",
                                   old.revision),
                      details);
  }
  if (old.state == DocumentState::kReady) return CheckRevision(replaces, old.revision);
  return StoreError(absl::StatusCode::kAborted, reason::kRevisionMismatch,
                    absl::StrCat("document '", old.name, "' is being built"), details);
}

class DocumentImportImpl final : public DocumentImport {
 public:
  DocumentImportImpl(AdapterStore* store, Publisher* publisher, DocumentKey key, uint64_t replaces,
                     absl::Time now)
      : store_(store),
        publisher_(publisher),
        key_(std::move(key)),
        replaces_(replaces),
        now_(now),
        batch_(std::make_unique<WrittenBatch>(publisher)) {}

  absl::Status AddText(const std::string& text) override;
  absl::Status AddCache(const NewCache& cache) override;
  absl::Status AddAdapter(const ImportedAdapter& adapter) override;
  absl::StatusOr<Document> Publish(const ImportedDocument& document) override;

 private:
  struct StagedCache {
    CacheSpec spec;
    StoredFile file;
  };
  struct StagedAdapter {
    AdapterRow row;
    std::vector<StoredFile> files;  // the packed one comes last
  };

  absl::StatusOr<std::vector<StoredFile>> Stage(const std::vector<PlannedFile>& planned);
  absl::Status Insert(Sql& sql, const ImportedDocument& document,
                      std::vector<IntentFile>& deleted) const;
  absl::Status InsertArtifacts(Sql& sql, const DocumentRow& row,
                               std::vector<IntentFile>& deleted) const;
  DocumentRow RowOf(const ImportedDocument& document, const CollectionRow& collection) const;

  AdapterStore* const store_;
  Publisher* const publisher_;
  const DocumentKey key_;
  const uint64_t replaces_;
  const absl::Time now_;
  std::unique_ptr<WrittenBatch> batch_;
  std::optional<StoredFile> text_;
  TextWords words_;  // of the text
  std::vector<StagedCache> caches_;
  std::vector<StagedAdapter> adapters_;
};

absl::StatusOr<std::vector<StoredFile>> DocumentImportImpl::Stage(
    const std::vector<PlannedFile>& planned) {
  STORE_ASSIGN_OR_RETURN(std::unique_ptr<WrittenBatch> written, publisher_->Write(planned));
  std::vector<StoredFile> files = written->files();
  batch_->Join(std::move(written));
  return files;
}

absl::Status DocumentImportImpl::AddText(const std::string& text) {
  const std::string frame = CompressText(text);
  const NewFile file = FileFromMemory(kTextFileName, std::as_bytes(std::span(frame)));
  STORE_ASSIGN_OR_RETURN(const std::vector<StoredFile> files,
                         Stage({{&file, ArtifactKind::kText}}));
  text_ = files.front();
  words_ = CountText(text);
  return absl::OkStatus();
}

absl::Status DocumentImportImpl::AddCache(const NewCache& cache) {
  STORE_RETURN_IF_ERROR(CheckSpec(cache.spec));
  STORE_ASSIGN_OR_RETURN(const std::vector<StoredFile> files,
                         Stage({{&cache.file, ArtifactKind::kCache}}));
  caches_.push_back({cache.spec, files.front()});
  return absl::OkStatus();
}

absl::Status DocumentImportImpl::AddAdapter(const ImportedAdapter& adapter) {
  STORE_RETURN_IF_ERROR(CheckSpec(adapter.spec));
  std::vector<PlannedFile> planned;
  for (const NewFile& file : adapter.files) planned.push_back({&file, ArtifactKind::kAdapter});
  planned.push_back({&adapter.packed, ArtifactKind::kAdapter});
  STORE_ASSIGN_OR_RETURN(std::vector<StoredFile> files, Stage(planned));
  AdapterRow row;
  row.version = adapter.version;
  row.spec = adapter.spec;
  row.state = adapter.state;
  row.created = now_;
  adapters_.push_back({std::move(row), std::move(files)});
  return absl::OkStatus();
}

absl::StatusOr<Document> DocumentImportImpl::Publish(const ImportedDocument& document) {
  STORE_RETURN_IF_ERROR(CheckSpec(document.spec));
  STORE_RETURN_IF_ERROR(publisher_->Commit(
      batch_.get(),
      [&](Sql& sql, std::vector<IntentFile>& deleted) { return Insert(sql, document, deleted); }));
  return store_->GetDocument(key_);
}

DocumentRow DocumentImportImpl::RowOf(const ImportedDocument& document,
                                      const CollectionRow& collection) const {
  DocumentRow row;
  row.collection_id = collection.id;
  row.name = key_.id;
  row.state = DocumentState::kReady;
  row.spec = document.spec;
  row.document_tokens = document.document_tokens;
  row.default_cache_id = document.default_cache_id;
  row.current_adapter = document.current_adapter_version;
  for (const StagedAdapter& adapter : adapters_) {
    row.last_adapter = std::max(row.last_adapter, adapter.row.version);
  }
  row.evaluation = document.evaluation;
  row.created = row.updated = now_;
  return row;
}

absl::Status DocumentImportImpl::Insert(Sql& sql, const ImportedDocument& document,
                                        std::vector<IntentFile>& deleted) const {
  STORE_ASSIGN_OR_RETURN(const CollectionRow collection, RequireCollection(sql, key_.collection));
  STORE_ASSIGN_OR_RETURN(const std::optional<DocumentRow> old,
                         FindDocument(sql, collection.id, key_.id));
  DocumentRow row = RowOf(document, collection);
  if (old.has_value()) {
    STORE_RETURN_IF_ERROR(CheckPlace(*old, replaces_));
    STORE_RETURN_IF_ERROR(RemoveDocument(sql, old->id, deleted));
    row.revision = old->revision + 1;
  }
  uint64_t new_bytes = 0;
  for (const StoredFile& file : batch_->files()) new_bytes += file.bytes;
  STORE_RETURN_IF_ERROR(CheckQuota(sql, collection, 1, new_bytes));
  STORE_ASSIGN_OR_RETURN(row.id, InsertDocument(sql, row));
  if (text_.has_value()) {
    STORE_RETURN_IF_ERROR(IndexDocument(sql, collection, row, words_));
  }
  return InsertArtifacts(sql, row, deleted);
}

absl::Status DocumentImportImpl::InsertArtifacts(Sql& sql, const DocumentRow& row,
                                                 std::vector<IntentFile>& deleted) const {
  for (const StagedAdapter& adapter : adapters_) {
    AdapterRow adapter_row = adapter.row;
    adapter_row.document_id = row.id;
    STORE_ASSIGN_OR_RETURN(adapter_row.id, InsertAdapter(sql, adapter_row));
    STORE_RETURN_IF_ERROR(InsertAdapterFiles(sql, adapter_row, adapter.files));
  }
  std::vector<WrittenCache> caches;
  for (const StagedCache& cache : caches_) {
    STORE_RETURN_IF_ERROR(RequireMakers(sql, row, cache.spec));
    caches.push_back({&cache.spec, &cache.file});
  }
  STORE_RETURN_IF_ERROR(AddCaches(sql, row, caches, now_, deleted).status());
  if (!text_.has_value()) return absl::OkStatus();
  return InsertFile(sql, {*text_, FileRole::kText, row.id});
}

}  // namespace

absl::StatusOr<std::unique_ptr<DocumentImport>> StoreImpl::BeginImport(const DocumentKey& key,
                                                                       uint64_t replaces) {
  STORE_RETURN_IF_ERROR(CheckKey(key));
  STORE_RETURN_IF_ERROR(registry().Read([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const CollectionRow collection, RequireCollection(sql, key.collection));
    STORE_ASSIGN_OR_RETURN(const std::optional<DocumentRow> old,
                           FindDocument(sql, collection.id, key.id));
    return old.has_value() ? CheckPlace(*old, replaces) : absl::OkStatus();
  }));
  return std::make_unique<DocumentImportImpl>(this, parts_.publisher.get(), key, replaces, Now());
}

}  // namespace docmem::store
