#include "adapter_store/registry/document_table.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "adapter_store/registry/row_codec.h"
#include "adapter_store/status_macros.h"

namespace docmem::store {
namespace {

constexpr char kSelect[] =
    "SELECT id, collection_id, name, state, state_reason, builder, title, pinned, system_text, "
    "text_sha256, text_bytes, document_tokens, default_cache_id, current_adapter, last_adapter, "
    "evaluation, revision, created, updated, checksum FROM documents ";

std::vector<SqlValue> Encode(const DocumentRow& row) {
  return RowWriter()
      .Add(row.collection_id)
      .AddText(row.name)
      .Add(static_cast<int64_t>(row.state))
      .AddText(row.state_reason)
      .AddText(row.builder)
      .AddText(row.spec.title)
      .Add(row.spec.pinned)
      .AddText(row.spec.system_text)
      .AddText(row.spec.text_sha256)
      .AddSize(row.spec.text_bytes)
      .Add(row.document_tokens)
      .AddText(row.default_cache_id)
      .Add(row.current_adapter)
      .Add(row.last_adapter)
      .AddText(absl::Base64Escape(row.evaluation))
      .AddSize(row.revision)
      .AddTime(row.created)
      .AddTime(row.updated)
      .Finish();
}

DocumentRow Decode(const SqlRow& columns) {
  RowReader reader(columns);
  DocumentRow row;
  row.id = reader.Int();
  row.collection_id = reader.Int();
  row.name = reader.Text();
  row.state = static_cast<DocumentState>(reader.Int());
  row.state_reason = reader.Text();
  row.builder = reader.Text();
  row.spec.title = reader.Text();
  row.spec.pinned = reader.Int() != 0;
  row.spec.system_text = reader.Text();
  row.spec.text_sha256 = reader.Text();
  row.spec.text_bytes = reader.Size();
  row.document_tokens = reader.Count();
  row.default_cache_id = reader.Text();
  row.current_adapter = reader.Count();
  row.last_adapter = reader.Count();
  const bool decoded = absl::Base64Unescape(reader.Text(), &row.evaluation);
  row.revision = reader.Size();
  row.created = reader.Time();
  row.updated = reader.Time();
  row.damaged = reader.damaged() || !decoded;
  return row;
}

absl::StatusOr<std::optional<DocumentRow>> FindOne(Sql& sql, const std::string& where,
                                                   const std::vector<SqlValue>& parameters) {
  std::optional<DocumentRow> found;
  STORE_RETURN_IF_ERROR(sql.Query(absl::StrCat(kSelect, where), parameters, [&](const SqlRow& row) {
    found = Decode(row);
    return absl::OkStatus();
  }));
  return found;
}

}  // namespace

absl::StatusOr<int64_t> InsertDocument(Sql& sql, const DocumentRow& row) {
  int64_t id = 0;
  STORE_RETURN_IF_ERROR(sql.Query(
      "INSERT INTO documents (collection_id, name, state, state_reason, builder, title, pinned, "
      "system_text, text_sha256, text_bytes, document_tokens, default_cache_id, current_adapter, "
      "last_adapter, evaluation, revision, created, updated, checksum) VALUES ($1, $2, $3, $4, "
      "$5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) RETURNING id",
      Encode(row), [&](const SqlRow& result) {
        id = IntOf(result[0]);
        return absl::OkStatus();
      }));
  STORE_RETURN_IF_ERROR(ReplaceLabels(sql, id, row.spec.labels));
  return id;
}

absl::StatusOr<std::optional<DocumentRow>> FindDocument(Sql& sql, int64_t collection_id,
                                                        const std::string& name) {
  return FindOne(sql, "WHERE collection_id = $1 AND name = $2", {collection_id, name});
}

absl::StatusOr<std::optional<DocumentRow>> FindDocumentById(Sql& sql, int64_t id) {
  return FindOne(sql, "WHERE id = $1", {id});
}

absl::StatusOr<std::vector<DocumentRow>> ListDocumentRows(Sql& sql, const DocumentRange& range) {
  std::string statement = absl::StrCat(kSelect, "WHERE collection_id = $1");
  std::vector<SqlValue> parameters = {range.collection_id};
  const auto parameter = [&](SqlValue value) {
    parameters.push_back(std::move(value));
    return absl::StrCat("$", parameters.size());
  };
  const char* column = range.query.order == DocumentOrder::kId ? "name" : "id";
  if (range.after.has_value()) {
    absl::StrAppend(&statement, " AND ", column, range.query.descending ? " < " : " > ",
                    parameter(*range.after));
  }
  for (const auto& [key, value] : range.query.labels) {
    absl::StrAppend(&statement,
                    " AND EXISTS (SELECT 1 FROM labels WHERE document_id = documents.id AND key = ",
                    parameter(key));
    absl::StrAppend(&statement, " AND value = ", parameter(value), ")");
  }
  absl::StrAppend(&statement, " ORDER BY ", column, range.query.descending ? " DESC" : " ASC",
                  " LIMIT ", parameter(int64_t{range.limit}));
  std::vector<DocumentRow> rows;
  STORE_RETURN_IF_ERROR(sql.Query(statement, parameters, [&](const SqlRow& row) {
    rows.push_back(Decode(row));
    return absl::OkStatus();
  }));
  return rows;
}

absl::Status ScanDocuments(Sql& sql,
                           absl::FunctionRef<absl::Status(const DocumentRow&)> on_document) {
  return sql.Query(kSelect, {}, [&](const SqlRow& row) { return on_document(Decode(row)); });
}

absl::StatusOr<std::vector<int64_t>> BuildsBefore(Sql& sql, absl::Time before) {
  std::vector<int64_t> ids;
  STORE_RETURN_IF_ERROR(
      sql.Query("SELECT id FROM documents WHERE state = $1 AND updated < $2",
                {static_cast<int64_t>(DocumentState::kBuilding), absl::ToUnixMicros(before)},
                [&](const SqlRow& row) {
                  ids.push_back(IntOf(row[0]));
                  return absl::OkStatus();
                }));
  return ids;
}

absl::Status UpdateDocumentRow(Sql& sql, const DocumentRow& row) {
  std::vector<SqlValue> parameters = Encode(row);
  parameters.emplace_back(row.id);
  return sql.Execute(
      "UPDATE documents SET collection_id = $1, name = $2, state = $3, state_reason = $4, "
      "builder = $5, title = $6, pinned = $7, system_text = $8, text_sha256 = $9, "
      "text_bytes = $10, document_tokens = $11, default_cache_id = $12, current_adapter = $13, "
      "last_adapter = $14, evaluation = $15, revision = $16, created = $17, updated = $18, "
      "checksum = $19 WHERE id = $20",
      parameters);
}

absl::Status DeleteDocumentRow(Sql& sql, int64_t id) {
  return sql.Execute("DELETE FROM documents WHERE id = $1", {id});
}

absl::StatusOr<Labels> LabelsOf(Sql& sql, int64_t document_id) {
  Labels labels;
  STORE_RETURN_IF_ERROR(sql.Query("SELECT key, value FROM labels WHERE document_id = $1",
                                  {document_id}, [&](const SqlRow& row) {
                                    labels.emplace(TextOf(row[0]), TextOf(row[1]));
                                    return absl::OkStatus();
                                  }));
  return labels;
}

absl::Status ReplaceLabels(Sql& sql, int64_t document_id, const Labels& labels) {
  STORE_RETURN_IF_ERROR(sql.Execute("DELETE FROM labels WHERE document_id = $1", {document_id}));
  for (const auto& [key, value] : labels) {
    STORE_RETURN_IF_ERROR(
        sql.Execute("INSERT INTO labels (document_id, key, value) VALUES ($1, $2, $3)",
                    {document_id, key, value}));
  }
  return absl::OkStatus();
}

}  // namespace docmem::store
