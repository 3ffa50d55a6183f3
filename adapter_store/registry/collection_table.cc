#include "adapter_store/registry/collection_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "adapter_store/registry/row_codec.h"
#include "adapter_store/status_macros.h"

namespace docmem::store {
namespace {

constexpr char kSelect[] =
    "SELECT id, name, retain_text, lexical_index, max_in_flight, max_queued, max_bytes, "
    "max_documents, default_ratio_ppm, default_mode, revision, created, updated, checksum "
    "FROM collections ";

std::vector<SqlValue> Encode(const CollectionRow& row) {
  const CollectionSettings& settings = row.settings;
  return RowWriter()
      .AddText(row.name)
      .Add(settings.retain_text)
      .Add(settings.lexical_index)
      .Add(settings.limits.max_in_flight)
      .Add(settings.limits.max_queued)
      .AddSize(settings.limits.max_bytes)
      .Add(settings.limits.max_documents)
      .Add(settings.default_ratio_ppm)
      .AddText(settings.default_mode)
      .AddSize(row.revision)
      .AddTime(row.created)
      .AddTime(row.updated)
      .Finish();
}

CollectionRow Decode(const SqlRow& columns) {
  RowReader reader(columns);
  CollectionRow row;
  row.id = reader.Int();
  row.name = reader.Text();
  row.settings.retain_text = reader.Int() != 0;
  row.settings.lexical_index = reader.Int() != 0;
  row.settings.limits.max_in_flight = reader.Count();
  row.settings.limits.max_queued = reader.Count();
  row.settings.limits.max_bytes = reader.Size();
  row.settings.limits.max_documents = reader.Count();
  row.settings.default_ratio_ppm = reader.Count();
  row.settings.default_mode = reader.Text();
  row.revision = reader.Size();
  row.created = reader.Time();
  row.updated = reader.Time();
  row.damaged = reader.damaged();
  return row;
}

absl::StatusOr<std::optional<CollectionRow>> FindOne(Sql& sql, const std::string& where,
                                                     const SqlValue& parameter) {
  std::optional<CollectionRow> found;
  STORE_RETURN_IF_ERROR(
      sql.Query(absl::StrCat(kSelect, where), {parameter}, [&](const SqlRow& row) {
        found = Decode(row);
        return absl::OkStatus();
      }));
  return found;
}

}  // namespace

absl::StatusOr<int64_t> InsertCollection(Sql& sql, const CollectionRow& row) {
  int64_t id = 0;
  STORE_RETURN_IF_ERROR(sql.Query(
      "INSERT INTO collections (name, retain_text, lexical_index, max_in_flight, max_queued, "
      "max_bytes, max_documents, default_ratio_ppm, default_mode, revision, created, updated, "
      "checksum) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) RETURNING id",
      Encode(row), [&](const SqlRow& result) {
        id = IntOf(result[0]);
        return absl::OkStatus();
      }));
  return id;
}

absl::StatusOr<std::optional<CollectionRow>> FindCollection(Sql& sql, const std::string& name) {
  return FindOne(sql, "WHERE name = $1", name);
}

absl::StatusOr<std::optional<CollectionRow>> FindCollectionById(Sql& sql, int64_t id) {
  return FindOne(sql, "WHERE id = $1", id);
}

absl::StatusOr<std::vector<CollectionRow>> ListCollectionRows(Sql& sql, const std::string& after,
                                                              uint32_t limit) {
  std::vector<CollectionRow> rows;
  STORE_RETURN_IF_ERROR(sql.Query(absl::StrCat(kSelect, "WHERE name > $1 ORDER BY name LIMIT $2"),
                                  {after, int64_t{limit}}, [&](const SqlRow& row) {
                                    rows.push_back(Decode(row));
                                    return absl::OkStatus();
                                  }));
  return rows;
}

absl::Status UpdateCollectionRow(Sql& sql, const CollectionRow& row) {
  std::vector<SqlValue> parameters = Encode(row);
  parameters.emplace_back(row.id);
  return sql.Execute(
      "UPDATE collections SET name = $1, retain_text = $2, lexical_index = $3, "
      "max_in_flight = $4, max_queued = $5, max_bytes = $6, max_documents = $7, "
      "default_ratio_ppm = $8, default_mode = $9, revision = $10, created = $11, updated = $12, "
      "checksum = $13 WHERE id = $14",
      parameters);
}

absl::Status DeleteCollectionRow(Sql& sql, int64_t id) {
  return sql.Execute("DELETE FROM collections WHERE id = $1", {id});
}

absl::StatusOr<CollectionUsage> UsageOfCollection(Sql& sql, int64_t id) {
  CollectionUsage usage;
  STORE_RETURN_IF_ERROR(
      sql.Query("SELECT (SELECT COUNT(*) FROM documents WHERE collection_id = $1), "
                "(SELECT COALESCE(SUM(files.bytes), 0) FROM files JOIN documents "
                "ON files.document_id = documents.id WHERE documents.collection_id = $2)",
                {id, id}, [&](const SqlRow& row) {
                  usage.documents = static_cast<uint64_t>(IntOf(row[0]));
                  usage.bytes = static_cast<uint64_t>(IntOf(row[1]));
                  return absl::OkStatus();
                }));
  return usage;
}

absl::StatusOr<std::optional<std::string>> FindSetting(Sql& sql, const std::string& key) {
  std::optional<std::string> value;
  STORE_RETURN_IF_ERROR(
      sql.Query("SELECT value FROM settings WHERE key = $1", {key}, [&](const SqlRow& row) {
        value = TextOf(row[0]);
        return absl::OkStatus();
      }));
  return value;
}

absl::Status PutSettingRow(Sql& sql, const std::string& key, const std::string& value) {
  return sql.Execute(
      "INSERT INTO settings (key, value) VALUES ($1, $2) "
      "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
      {key, value});
}

}  // namespace docmem::store
