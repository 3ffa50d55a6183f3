#include "adapter_store/registry/training_job_table.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "adapter_store/registry/row_codec.h"
#include "adapter_store/status_macros.h"

namespace docmem::store {
namespace {

constexpr char kSelect[] =
    "SELECT id, document_id, state, request, report, created, updated, checksum "
    "FROM training_jobs ";
constexpr auto kFirstEnded = static_cast<int64_t>(TrainingJobState::kSucceeded);
static_assert(kFirstEnded == 3, "statements and an index say so");

std::vector<SqlValue> Encode(const TrainingJobRow& row) {
  return RowWriter()
      .Add(row.document_id)
      .Add(static_cast<int64_t>(row.state))
      .AddText(absl::Base64Escape(row.request))
      .AddText(absl::Base64Escape(row.report))
      .AddTime(row.created)
      .AddTime(row.updated)
      .Finish();
}

TrainingJobRow Decode(const SqlRow& columns) {
  RowReader reader(columns);
  TrainingJobRow row;
  row.id = reader.Int();
  row.document_id = reader.Int();
  row.state = static_cast<TrainingJobState>(reader.Int());
  const bool has_request = absl::Base64Unescape(reader.Text(), &row.request);
  const bool has_report = absl::Base64Unescape(reader.Text(), &row.report);
  row.created = reader.Time();
  row.updated = reader.Time();
  row.damaged = reader.damaged() || !has_request || !has_report;
  return row;
}

absl::StatusOr<std::vector<TrainingJobRow>> Select(Sql& sql, const std::string& where,
                                                   const std::vector<SqlValue>& parameters) {
  std::vector<TrainingJobRow> rows;
  STORE_RETURN_IF_ERROR(sql.Query(absl::StrCat(kSelect, where), parameters, [&](const SqlRow& row) {
    rows.push_back(Decode(row));
    return absl::OkStatus();
  }));
  return rows;
}

}  // namespace

absl::StatusOr<int64_t> InsertTrainingJob(Sql& sql, const TrainingJobRow& row) {
  int64_t id = 0;
  STORE_RETURN_IF_ERROR(
      sql.Query("INSERT INTO training_jobs (document_id, state, request, report, created, updated, "
                "checksum) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id",
                Encode(row), [&](const SqlRow& result) {
                  id = IntOf(result[0]);
                  return absl::OkStatus();
                }));
  return id;
}

absl::StatusOr<std::optional<TrainingJobRow>> FindTrainingJob(Sql& sql, int64_t id) {
  STORE_ASSIGN_OR_RETURN(std::vector<TrainingJobRow> rows, Select(sql, "WHERE id = $1", {id}));
  if (rows.empty()) return std::optional<TrainingJobRow>();
  return std::optional<TrainingJobRow>(std::move(rows.front()));
}

absl::StatusOr<std::vector<TrainingJobRow>> ListTrainingJobRows(Sql& sql,
                                                                const TrainingJobRange& range) {
  const bool one = range.document_id != 0;
  const char* const where =
      one ? "WHERE document_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3"
          : "WHERE document_id IN (SELECT id FROM documents WHERE collection_id = $1) "
            "AND id < $2 ORDER BY id DESC LIMIT $3";
  return Select(
      sql, where,
      {one ? range.document_id : range.collection_id, range.before, int64_t{range.limit}});
}

absl::Status ScanTrainingJobs(Sql& sql,
                              absl::FunctionRef<absl::Status(const TrainingJobRow&)> on_job) {
  return sql.Query(absl::StrCat(kSelect, "ORDER BY id"), {},
                   [&](const SqlRow& row) { return on_job(Decode(row)); });
}

absl::Status UpdateTrainingJobRow(Sql& sql, const TrainingJobRow& row) {
  std::vector<SqlValue> parameters = Encode(row);
  parameters.emplace_back(row.id);
  return sql.Execute(
      "UPDATE training_jobs SET document_id = $1, state = $2, request = $3, report = $4, "
      "created = $5, updated = $6, checksum = $7 WHERE id = $8",
      parameters);
}

absl::StatusOr<std::optional<TrainingJobRow>> FindUnclaimedTrainingJob(Sql& sql,
                                                                       const std::string& instance,
                                                                       absl::Time now,
                                                                       int64_t after) {
  STORE_ASSIGN_OR_RETURN(
      std::vector<TrainingJobRow> rows,
      Select(sql,
             absl::StrCat("WHERE state < 3 AND id > $1 AND NOT EXISTS (SELECT 1 FROM "
                          "training_claims WHERE job_id = training_jobs.id AND instance <> $2 AND "
                          "expires > $3) ORDER BY id LIMIT 1",
                          sql.skip_locked()),
             {after, instance, absl::ToUnixMicros(now)}));
  if (rows.empty()) return std::optional<TrainingJobRow>();
  return std::optional<TrainingJobRow>(std::move(rows.front()));
}

absl::StatusOr<int64_t> CountOpenTrainingJobRows(Sql& sql) {
  int64_t count = 0;
  STORE_RETURN_IF_ERROR(
      sql.Query("SELECT COUNT(*) FROM training_jobs WHERE state < 3", {}, [&](const SqlRow& row) {
        count = IntOf(row[0]);
        return absl::OkStatus();
      }));
  return count;
}

absl::Status PutTrainingClaim(Sql& sql, int64_t job_id, const TrainingClaim& claim) {
  return sql.Execute(
      "INSERT INTO training_claims (job_id, instance, expires) VALUES ($1, $2, $3) "
      "ON CONFLICT (job_id) DO UPDATE SET instance = excluded.instance, expires = excluded.expires",
      {job_id, claim.instance, absl::ToUnixMicros(claim.expires)});
}

absl::StatusOr<std::optional<TrainingClaim>> FindTrainingClaim(Sql& sql, int64_t job_id) {
  std::optional<TrainingClaim> claim;
  STORE_RETURN_IF_ERROR(sql.Query("SELECT instance, expires FROM training_claims WHERE job_id = $1",
                                  {job_id}, [&](const SqlRow& row) {
                                    claim = {TextOf(row[0]), absl::FromUnixMicros(IntOf(row[1]))};
                                    return absl::OkStatus();
                                  }));
  return claim;
}

absl::Status DeleteTrainingJobRow(Sql& sql, int64_t id) {
  return sql.Execute("DELETE FROM training_jobs WHERE id = $1", {id});
}

absl::Status DeleteOldTrainingJobRows(Sql& sql, int64_t document_id, uint32_t keep) {
  return sql.Execute(
      "DELETE FROM training_jobs WHERE document_id = $1 AND state >= $2 AND id NOT IN (SELECT id "
      "FROM training_jobs WHERE document_id = $3 AND state >= $4 ORDER BY updated DESC, id DESC "
      "LIMIT $5)",
      {document_id, kFirstEnded, document_id, kFirstEnded, int64_t{keep}});
}

}  // namespace docmem::store
