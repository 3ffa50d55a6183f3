#include "adapter_store/registry/artifact_tables.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapter_store/registry/row_codec.h"
#include "adapter_store/status_macros.h"

namespace docmem::store {
namespace {

constexpr char kSelectCache[] =
    "SELECT id, document_id, name, identity, ratio_ppm, profile, kv_dtype, writer_adapter, "
    "scorer_adapter, system_text_digest, head_tokens, context_tokens, kept_tokens, device_bytes, "
    "full_bytes, created, system_text, checksum FROM caches ";
constexpr char kSelectAdapter[] =
    "SELECT id, document_id, version, hash, scope, base_model, description, max_rank, "
    "prompt_format_digest, text_digest, training_job_id, device_bytes, state, created, checksum "
    "FROM adapters ";
constexpr char kSelectFile[] =
    "SELECT id, document_id, cache_id, adapter_id, role, name, bytes, digest, quarantine, job_id, "
    "checksum FROM files ";

std::vector<SqlValue> Encode(const CacheRow& row) {
  return RowWriter()
      .Add(row.document_id)
      .AddText(row.spec.id)
      .AddMap(row.spec.identity)
      .Add(row.spec.ratio_ppm)
      .AddText(row.spec.profile)
      .AddText(row.spec.kv_dtype)
      .AddText(row.spec.writer_adapter_hash)
      .AddText(row.spec.scorer_adapter_hash)
      .AddText(row.spec.system_text_digest)
      .Add(row.spec.head_tokens)
      .Add(row.spec.context_tokens)
      .Add(row.spec.kept_tokens)
      .AddSize(row.spec.device_bytes)
      .AddSize(row.spec.full_bytes)
      .AddTime(row.created)
      .AddOptionalText(row.spec.system_text)
      .Finish();
}

CacheRow DecodeCache(const SqlRow& columns) {
  RowReader reader(columns);
  CacheRow row;
  row.id = reader.Int();
  row.document_id = reader.Int();
  row.spec.id = reader.Text();
  row.spec.identity = reader.Map();
  row.spec.ratio_ppm = reader.Count();
  row.spec.profile = reader.Text();
  row.spec.kv_dtype = reader.Text();
  row.spec.writer_adapter_hash = reader.Text();
  row.spec.scorer_adapter_hash = reader.Text();
  row.spec.system_text_digest = reader.Text();
  row.spec.head_tokens = reader.Count();
  row.spec.context_tokens = reader.Count();
  row.spec.kept_tokens = reader.Count();
  row.spec.device_bytes = reader.Size();
  row.spec.full_bytes = reader.Size();
  row.created = reader.Time();
  row.spec.system_text = reader.OptionalText();
  row.damaged = reader.damaged();
  return row;
}

std::vector<SqlValue> Encode(const AdapterRow& row) {
  return RowWriter()
      .Add(row.document_id)
      .Add(row.version)
      .AddText(row.spec.hash)
      .AddText(row.spec.scope)
      .AddText(row.spec.base_model)
      .AddText(row.spec.description)
      .Add(row.spec.max_rank)
      .AddText(row.spec.prompt_format_digest)
      .AddText(row.spec.text_digest)
      .AddText(row.spec.training_job_id)
      .AddSize(row.spec.device_bytes)
      .Add(static_cast<int64_t>(row.state))
      .AddTime(row.created)
      .Finish();
}

AdapterRow DecodeAdapter(const SqlRow& columns) {
  RowReader reader(columns);
  AdapterRow row;
  row.id = reader.Int();
  row.document_id = reader.Int();
  row.version = reader.Count();
  row.spec.hash = reader.Text();
  row.spec.scope = reader.Text();
  row.spec.base_model = reader.Text();
  row.spec.description = reader.Text();
  row.spec.max_rank = reader.Count();
  row.spec.prompt_format_digest = reader.Text();
  row.spec.text_digest = reader.Text();
  row.spec.training_job_id = reader.Text();
  row.spec.device_bytes = reader.Size();
  row.state = static_cast<AdapterState>(reader.Int());
  row.created = reader.Time();
  row.damaged = reader.damaged();
  return row;
}

std::vector<SqlValue> Encode(const FileRow& row) {
  return RowWriter()
      .Add(row.document_id)
      .AddReference(row.cache_id)
      .AddReference(row.adapter_id)
      .Add(static_cast<int64_t>(row.role))
      .AddText(row.file.name)
      .AddSize(row.file.bytes)
      .AddText(row.file.digest)
      .AddText(row.file.quarantine_reason)
      .AddReference(row.job_id)
      .Finish();
}

FileRow DecodeFile(const SqlRow& columns) {
  RowReader reader(columns);
  FileRow row;
  row.file.id = reader.Int();
  row.document_id = reader.Int();
  row.cache_id = reader.Reference();
  row.adapter_id = reader.Reference();
  row.role = static_cast<FileRole>(reader.Int());
  row.file.kind = KindOf(row.role);
  row.file.name = reader.Text();
  row.file.bytes = reader.Size();
  row.file.digest = reader.Text();
  row.file.quarantine_reason = reader.Text();
  row.job_id = reader.Reference();
  row.damaged = reader.damaged();
  if (row.damaged) row.file.quarantine_reason = "the file's registry row is damaged";
  row.file.quarantined = !row.file.quarantine_reason.empty();
  return row;
}

template <class Row>
absl::StatusOr<std::vector<Row>> Select(Sql& sql, const std::string& statement,
                                        const std::vector<SqlValue>& parameters,
                                        Row (*decode)(const SqlRow&)) {
  std::vector<Row> rows;
  STORE_RETURN_IF_ERROR(sql.Query(statement, parameters, [&](const SqlRow& row) {
    rows.push_back(decode(row));
    return absl::OkStatus();
  }));
  return rows;
}

template <class Row>
absl::StatusOr<std::optional<Row>> SelectOne(Sql& sql, const std::string& statement,
                                             const std::vector<SqlValue>& parameters,
                                             Row (*decode)(const SqlRow&)) {
  STORE_ASSIGN_OR_RETURN(std::vector<Row> rows, Select(sql, statement, parameters, decode));
  if (rows.empty()) return std::optional<Row>();
  return std::optional<Row>(std::move(rows.front()));
}

absl::StatusOr<int64_t> Number(Sql& sql, const std::string& statement,
                               const std::vector<SqlValue>& parameters) {
  int64_t number = 0;
  STORE_RETURN_IF_ERROR(sql.Query(statement, parameters, [&](const SqlRow& row) {
    number = IntOf(row[0]);
    return absl::OkStatus();
  }));
  return number;
}

}  // namespace

ArtifactKind KindOf(FileRole role) {
  switch (role) {
    case FileRole::kCache:
      return ArtifactKind::kCache;
    case FileRole::kAdapterFile:
    case FileRole::kAdapterPacked:
      return ArtifactKind::kAdapter;
    case FileRole::kCheckpoint:
      return ArtifactKind::kCheckpoint;
    default:
      return ArtifactKind::kText;
  }
}

absl::StatusOr<int64_t> InsertCache(Sql& sql, const CacheRow& row) {
  return Number(sql,
                "INSERT INTO caches (document_id, name, identity, ratio_ppm, profile, kv_dtype, "
                "writer_adapter, scorer_adapter, system_text_digest, head_tokens, context_tokens, "
                "kept_tokens, device_bytes, full_bytes, created, system_text, checksum) VALUES "
                "($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) "
                "RETURNING id",
                Encode(row));
}

absl::StatusOr<std::vector<CacheRow>> CachesOf(Sql& sql, int64_t document_id) {
  return Select(sql, absl::StrCat(kSelectCache, "WHERE document_id = $1 ORDER BY id"),
                {document_id}, DecodeCache);
}

absl::Status DeleteCacheRow(Sql& sql, int64_t id) {
  return sql.Execute("DELETE FROM caches WHERE id = $1", {id});
}

absl::StatusOr<int64_t> InsertAdapter(Sql& sql, const AdapterRow& row) {
  return Number(sql,
                "INSERT INTO adapters (document_id, version, hash, scope, base_model, "
                "description, max_rank, prompt_format_digest, text_digest, training_job_id, "
                "device_bytes, state, created, checksum) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, "
                "$9, $10, $11, $12, $13, $14) RETURNING id",
                Encode(row));
}

absl::StatusOr<std::optional<AdapterRow>> FindAdapter(Sql& sql, int64_t document_id,
                                                      uint32_t version) {
  return SelectOne(sql, absl::StrCat(kSelectAdapter, "WHERE document_id = $1 AND version = $2"),
                   {document_id, int64_t{version}}, DecodeAdapter);
}

absl::StatusOr<std::optional<AdapterRow>> FindAdapterByHash(Sql& sql, int64_t document_id,
                                                            const std::string& hash) {
  return SelectOne(sql, absl::StrCat(kSelectAdapter, "WHERE document_id = $1 AND hash = $2"),
                   {document_id, hash}, DecodeAdapter);
}

absl::StatusOr<std::vector<AdapterRow>> AdaptersOf(Sql& sql, int64_t document_id, uint32_t before,
                                                   uint32_t limit) {
  return Select(sql,
                absl::StrCat(kSelectAdapter,
                             "WHERE document_id = $1 AND version < $2 "
                             "ORDER BY version DESC LIMIT $3"),
                {document_id, int64_t{before}, int64_t{limit}}, DecodeAdapter);
}

absl::Status UpdateAdapterRow(Sql& sql, const AdapterRow& row) {
  std::vector<SqlValue> parameters = Encode(row);
  parameters.emplace_back(row.id);
  return sql.Execute(
      "UPDATE adapters SET document_id = $1, version = $2, hash = $3, scope = $4, "
      "base_model = $5, description = $6, max_rank = $7, prompt_format_digest = $8, "
      "text_digest = $9, training_job_id = $10, device_bytes = $11, state = $12, created = $13, "
      "checksum = $14 WHERE id = $15",
      parameters);
}

absl::Status DeleteAdapterRow(Sql& sql, int64_t id) {
  return sql.Execute("DELETE FROM adapters WHERE id = $1", {id});
}

absl::Status InsertFile(Sql& sql, const FileRow& row) {
  std::vector<SqlValue> parameters = Encode(row);
  parameters.emplace_back(row.file.id);
  return sql.Execute(
      "INSERT INTO files (document_id, cache_id, adapter_id, role, name, bytes, digest, "
      "quarantine, job_id, checksum, id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
      parameters);
}

absl::StatusOr<std::optional<FileRow>> FindFile(Sql& sql, int64_t id) {
  return SelectOne(sql, absl::StrCat(kSelectFile, "WHERE id = $1"), {id}, DecodeFile);
}

absl::StatusOr<std::vector<FileRow>> FilesOf(Sql& sql, int64_t document_id) {
  return Select(sql, absl::StrCat(kSelectFile, "WHERE document_id = $1 ORDER BY id"), {document_id},
                DecodeFile);
}

absl::StatusOr<std::vector<FileRow>> FilesOfJob(Sql& sql, int64_t job_id) {
  return Select(sql, absl::StrCat(kSelectFile, "WHERE job_id = $1 ORDER BY id"), {job_id},
                DecodeFile);
}

absl::Status UpdateFileRow(Sql& sql, const FileRow& row) {
  std::vector<SqlValue> parameters = Encode(row);
  parameters.emplace_back(row.file.id);
  return sql.Execute(
      "UPDATE files SET document_id = $1, cache_id = $2, adapter_id = $3, role = $4, name = $5, "
      "bytes = $6, digest = $7, quarantine = $8, job_id = $9, checksum = $10 WHERE id = $11",
      parameters);
}

absl::Status DeleteFileRow(Sql& sql, int64_t id) {
  return sql.Execute("DELETE FROM files WHERE id = $1", {id});
}

absl::StatusOr<std::vector<int64_t>> AllFileIds(Sql& sql) {
  return Select<int64_t>(sql, "SELECT id FROM files ORDER BY id", {},
                         [](const SqlRow& row) { return IntOf(row[0]); });
}

}  // namespace docmem::store
