#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "adapter_store/registry/registry.h"
#include "adapter_store/types.h"

namespace docmem::store {

struct DocumentRow {
  int64_t id = 0;
  int64_t collection_id = 0;
  std::string name;
  DocumentState state = DocumentState::kBuilding;
  std::string state_reason;
  std::string builder;  ///< instance that builds it; empty when none does
  DocumentSpec spec;    ///< its labels are a table of their own
  uint32_t document_tokens = 0;
  std::string default_cache_id;
  uint32_t current_adapter = 0;
  uint32_t last_adapter = 0;  ///< highest version ever given
  std::string evaluation;
  uint64_t revision = 1;
  absl::Time created;
  absl::Time updated;
  bool damaged = false;  ///< read only: its checksum is wrong
};

/// Returns the new id; ALREADY_EXISTS for a taken name. Stores the labels too.
absl::StatusOr<int64_t> InsertDocument(Sql& sql, const DocumentRow& row);
/// The result has no labels, here and below: see `LabelsOf`.
absl::StatusOr<std::optional<DocumentRow>> FindDocument(Sql& sql, int64_t collection_id,
                                                        const std::string& name);
absl::StatusOr<std::optional<DocumentRow>> FindDocumentById(Sql& sql, int64_t id);

struct DocumentRange {
  int64_t collection_id = 0;
  DocumentQuery query;
  /// Where the page before ended, none for the first: a name or a row id, as the order is.
  std::optional<SqlValue> after;
  uint32_t limit = 0;
};

absl::StatusOr<std::vector<DocumentRow>> ListDocumentRows(Sql& sql, const DocumentRange& range);
/// Visits every document of every collection.
absl::Status ScanDocuments(Sql& sql,
                           absl::FunctionRef<absl::Status(const DocumentRow&)> on_document);
/// Ids of documents whose building began before `before` and hasn't ended.
absl::StatusOr<std::vector<int64_t>> BuildsBefore(Sql& sql, absl::Time before);
/// Leaves the labels as they are.
absl::Status UpdateDocumentRow(Sql& sql, const DocumentRow& row);
/// Its labels, caches, adapters, training jobs and files' rows go with it.
absl::Status DeleteDocumentRow(Sql& sql, int64_t id);

absl::StatusOr<Labels> LabelsOf(Sql& sql, int64_t document_id);
absl::Status ReplaceLabels(Sql& sql, int64_t document_id, const Labels& labels);

}  // namespace docmem::store
