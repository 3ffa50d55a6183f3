#include <utility>

#include "absl/strings/str_cat.h"
#include "adapter_store/document_rows.h"
#include "adapter_store/errors.h"
#include "adapter_store/names.h"
#include "adapter_store/page_token.h"
#include "adapter_store/registry/word_table.h"
#include "adapter_store/status_macros.h"
#include "adapter_store/store_impl.h"

namespace docmem::store {
namespace {

constexpr char kCollectionList[] = "collections";
constexpr uint32_t kDeletedAtOnce = 100;

absl::StatusOr<Collection> LoadCollection(Sql& sql, const CollectionRow& row) {
  STORE_ASSIGN_OR_RETURN(const CollectionUsage usage, UsageOfCollection(sql, row.id));
  return Collection{row.name,    row.settings,    row.revision, row.created,
                    row.updated, usage.documents, usage.bytes};
}

absl::StatusOr<uint32_t> RemoveDocuments(Sql& sql, int64_t collection_id,
                                         std::vector<IntentFile>& deleted) {
  uint32_t count = 0;
  for (;;) {
    STORE_ASSIGN_OR_RETURN(
        const std::vector<DocumentRow> rows,
        ListDocumentRows(sql, {.collection_id = collection_id, .limit = kDeletedAtOnce}));
    if (rows.empty()) return count;
    for (const DocumentRow& row : rows) {
      STORE_RETURN_IF_ERROR(RemoveDocument(sql, row.id, deleted));
      ++count;
    }
  }
}

}  // namespace

absl::StatusOr<Collection> StoreImpl::CreateCollection(const std::string& name,
                                                       const CollectionSettings& settings) {
  STORE_RETURN_IF_ERROR(CheckId("collection", name));
  STORE_RETURN_IF_ERROR(CheckSettings(settings));
  CollectionRow row;
  row.name = name;
  row.settings = settings;
  row.created = row.updated = Now();
  const absl::Status status =
      registry().Write([&](Sql& sql) { return InsertCollection(sql, row).status(); });
  if (absl::IsAlreadyExists(status)) {
    return StoreError(absl::StatusCode::kAlreadyExists, reason::kCollectionExists,
                      absl::StrCat("there is already a collection '", name, "'"));
  }
  STORE_RETURN_IF_ERROR(status);
  return GetCollection(name);
}

absl::StatusOr<Collection> StoreImpl::GetCollection(const std::string& name) {
  STORE_RETURN_IF_ERROR(CheckId("collection", name));
  Collection collection;
  STORE_RETURN_IF_ERROR(registry().Read([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const CollectionRow row, RequireCollection(sql, name));
    STORE_ASSIGN_OR_RETURN(collection, LoadCollection(sql, row));
    return absl::OkStatus();
  }));
  return collection;
}

absl::StatusOr<CollectionSettings> StoreImpl::GetCollectionSettings(const std::string& name) {
  STORE_RETURN_IF_ERROR(CheckId("collection", name));
  CollectionSettings settings;
  STORE_RETURN_IF_ERROR(registry().Read([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const CollectionRow row, RequireCollection(sql, name));
    settings = row.settings;
    return absl::OkStatus();
  }));
  return settings;
}

absl::StatusOr<Page<Collection>> StoreImpl::ListCollections(const PageRequest& page) {
  STORE_RETURN_IF_ERROR(CheckPage(page));
  std::string after;
  if (!page.token.empty()) {
    STORE_ASSIGN_OR_RETURN(after, ReadPageToken(kCollectionList, page.token));
  }
  Page<Collection> result;
  STORE_RETURN_IF_ERROR(registry().Read([&](Sql& sql) -> absl::Status {
    result = {};
    STORE_ASSIGN_OR_RETURN(std::vector<CollectionRow> rows,
                           ListCollectionRows(sql, after, page.size + 1));
    const bool more = rows.size() > page.size;
    if (more) rows.pop_back();
    for (const CollectionRow& row : rows) {
      STORE_ASSIGN_OR_RETURN(Collection collection, LoadCollection(sql, row));
      result.items.push_back(std::move(collection));
    }
    if (more) result.next_token = MakePageToken(kCollectionList, rows.back().name);
    return absl::OkStatus();
  }));
  return result;
}

absl::StatusOr<Collection> StoreImpl::UpdateCollection(
    const std::string& name, uint64_t revision,
    absl::FunctionRef<absl::Status(CollectionSettings&)> edit) {
  STORE_RETURN_IF_ERROR(CheckId("collection", name));
  Collection collection;
  STORE_RETURN_IF_ERROR(registry().Write([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(CollectionRow row, RequireCollection(sql, name));
    STORE_RETURN_IF_ERROR(CheckRevision(revision, row.revision));
    STORE_RETURN_IF_ERROR(edit(row.settings));
    STORE_RETURN_IF_ERROR(CheckSettings(row.settings));
    ++row.revision;
    row.updated = Now();
    STORE_RETURN_IF_ERROR(UpdateCollectionRow(sql, row));
    if (!row.settings.lexical_index) {
      STORE_RETURN_IF_ERROR(DeleteWordsOfCollection(sql, row.id));
    }
    STORE_ASSIGN_OR_RETURN(collection, LoadCollection(sql, row));
    return absl::OkStatus();
  }));
  if (collection.settings.lexical_index) STORE_RETURN_IF_ERROR(CompleteIndex(name));
  return collection;
}

absl::StatusOr<uint32_t> StoreImpl::DeleteCollection(const std::string& name, bool force) {
  STORE_RETURN_IF_ERROR(CheckId("collection", name));
  if (name == kDefaultCollection) {
    return StoreError(absl::StatusCode::kFailedPrecondition, reason::kCollectionProtected,
                      "the collection 'default' can't be deleted");
  }
  uint32_t documents = 0;
  STORE_RETURN_IF_ERROR(
      parts_.publisher->Delete([&](Sql& sql, std::vector<IntentFile>& deleted) -> absl::Status {
        STORE_ASSIGN_OR_RETURN(const CollectionRow row, RequireCollection(sql, name));
        STORE_ASSIGN_OR_RETURN(const CollectionUsage usage, UsageOfCollection(sql, row.id));
        if (usage.documents > 0 && !force) {
          return StoreError(absl::StatusCode::kFailedPrecondition, reason::kCollectionNotEmpty,
                            absl::StrCat("collection '", name, "' has ", usage.documents,
                                         " documents; delete them or use force"));
        }
        STORE_ASSIGN_OR_RETURN(documents, RemoveDocuments(sql, row.id, deleted));
        return DeleteCollectionRow(sql, row.id);
      }));
  return documents;
}

}  // namespace docmem::store
