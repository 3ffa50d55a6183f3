#include <charconv>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapter_store/document_rows.h"
#include "adapter_store/errors.h"
#include "adapter_store/names.h"
#include "adapter_store/page_token.h"
#include "adapter_store/registry/training_job_table.h"
#include "adapter_store/status_macros.h"
#include "adapter_store/store_impl.h"

namespace docmem::store {
namespace {

constexpr int64_t kNewest = std::numeric_limits<int64_t>::max();
constexpr uint32_t kMaxEndedJobs = 32;  // of a document

// Where a job belongs.
struct Home {
  DocumentRow document;
  CollectionRow collection;
};

// Nothing where a damaged row names a document that isn't there.
absl::StatusOr<std::optional<Home>> HomeOf(Sql& sql, const TrainingJobRow& row) {
  STORE_ASSIGN_OR_RETURN(std::optional<DocumentRow> document,
                         FindDocumentById(sql, row.document_id));
  if (!document.has_value()) return std::optional<Home>();
  STORE_ASSIGN_OR_RETURN(std::optional<CollectionRow> collection,
                         FindCollectionById(sql, document->collection_id));
  if (!collection.has_value()) return std::optional<Home>();
  return std::optional<Home>({*std::move(document), *std::move(collection)});
}

// Nothing for a damaged row, which the next start drops.
absl::StatusOr<std::optional<TrainingJob>> LoadJob(Sql& sql, const TrainingJobRow& row) {
  if (row.damaged) return std::optional<TrainingJob>();
  STORE_ASSIGN_OR_RETURN(const std::optional<Home> home, HomeOf(sql, row));
  if (!home.has_value()) return std::optional<TrainingJob>();
  TrainingJob job;
  job.id = row.id;
  job.document = {home->collection.name, home->document.name};
  job.document_row = row.document_id;
  job.state = row.state;
  job.request = row.request;
  job.report = row.report;
  job.created = row.created;
  job.updated = row.updated;
  STORE_ASSIGN_OR_RETURN(const std::vector<FileRow> files, FilesOfJob(sql, row.id));
  if (!files.empty()) job.checkpoint = files.front().file;
  return std::optional<TrainingJob>(std::move(job));
}

absl::StatusOr<std::vector<TrainingJob>> LoadJobs(Sql& sql,
                                                  const std::vector<TrainingJobRow>& rows) {
  std::vector<TrainingJob> jobs;
  for (const TrainingJobRow& row : rows) {
    STORE_ASSIGN_OR_RETURN(std::optional<TrainingJob> job, LoadJob(sql, row));
    if (job.has_value()) jobs.push_back(*std::move(job));
  }
  return jobs;
}

absl::Status NoJob(int64_t id) {
  return StoreError(absl::StatusCode::kNotFound, reason::kJobNotFound,
                    absl::StrCat("there is no training job ", id));
}

absl::StatusOr<TrainingJobRow> RequireOpenJob(Sql& sql, int64_t id) {
  STORE_ASSIGN_OR_RETURN(std::optional<TrainingJobRow> row, FindTrainingJob(sql, id));
  if (!row.has_value() || row->damaged) return NoJob(id);
  if (!HasEnded(row->state)) return *std::move(row);
  return StoreError(absl::StatusCode::kFailedPrecondition, reason::kJobFinished,
                    absl::StrCat("training job ", id, " has ended; start another"));
}

absl::Status EditJob(Sql& sql, TrainingJobRow row, const TrainingJobEdit& edit, absl::Time now,
                     std::vector<IntentFile>& deleted) {
  row.state = edit.state.value_or(row.state);
  row.request = edit.request.value_or(row.request);
  row.report = edit.report.value_or(row.report);
  row.updated = now;
  if (HasEnded(row.state)) {
    STORE_RETURN_IF_ERROR(DoomCheckpoint(sql, row.id, deleted));
    // Before this one counts as ended: whatever the clock says, it isn't among the oldest.
    STORE_RETURN_IF_ERROR(DeleteOldTrainingJobRows(sql, row.document_id, kMaxEndedJobs - 1));
  }
  return UpdateTrainingJobRow(sql, row);
}

absl::Status ReplaceCheckpoint(Sql& sql, TrainingJobRow row, const StoredFile& file,
                               std::vector<IntentFile>& deleted) {
  STORE_RETURN_IF_ERROR(DoomCheckpoint(sql, row.id, deleted));
  STORE_ASSIGN_OR_RETURN(const std::optional<Home> home, HomeOf(sql, row));
  if (!home.has_value()) return NoJob(row.id);
  STORE_RETURN_IF_ERROR(CheckQuota(sql, home->collection, 0, file.bytes));
  FileRow file_row{file, FileRole::kCheckpoint, row.document_id};
  file_row.job_id = row.id;
  STORE_RETURN_IF_ERROR(InsertFile(sql, file_row));
  return UpdateTrainingJobRow(sql, row);
}

}  // namespace

absl::StatusOr<TrainingJob> StoreImpl::AddTrainingJob(const DocumentKey& key,
                                                      const std::string& request,
                                                      const std::string& report) {
  STORE_RETURN_IF_ERROR(CheckKey(key));
  TrainingJobRow row;
  row.request = request;
  row.report = report;
  row.created = row.updated = Now();
  STORE_RETURN_IF_ERROR(registry().Write([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const DocumentRow document, RequireReadyDocument(sql, key));
    row.document_id = document.id;
    STORE_ASSIGN_OR_RETURN(row.id, InsertTrainingJob(sql, row));
    return absl::OkStatus();
  }));
  return GetTrainingJob(row.id);
}

absl::StatusOr<TrainingJob> StoreImpl::GetTrainingJob(int64_t id) {
  std::optional<TrainingJob> job;
  STORE_RETURN_IF_ERROR(registry().Read([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const std::optional<TrainingJobRow> row, FindTrainingJob(sql, id));
    if (!row.has_value()) return NoJob(id);
    STORE_ASSIGN_OR_RETURN(job, LoadJob(sql, *row));
    return job.has_value() ? absl::OkStatus() : NoJob(id);
  }));
  return *std::move(job);
}

absl::StatusOr<Page<TrainingJob>> StoreImpl::ListTrainingJobs(const std::string& collection,
                                                              const std::string& document,
                                                              const PageRequest& page) {
  STORE_RETURN_IF_ERROR(CheckId("collection", collection));
  if (!document.empty()) STORE_RETURN_IF_ERROR(CheckId("document", document));
  STORE_RETURN_IF_ERROR(CheckPage(page));
  const std::string list = absl::StrCat("jobs/", collection, "/", document);
  TrainingJobRange range{.before = kNewest, .limit = page.size + 1};
  if (!page.token.empty()) {
    STORE_ASSIGN_OR_RETURN(const std::string last, ReadPageToken(list, page.token));
    std::from_chars(last.data(), last.data() + last.size(), range.before);
  }
  Page<TrainingJob> result;
  STORE_RETURN_IF_ERROR(registry().Read([&](Sql& sql) -> absl::Status {
    result = {};
    STORE_ASSIGN_OR_RETURN(const CollectionRow owner, RequireCollection(sql, collection));
    range.collection_id = owner.id;
    if (!document.empty()) {
      STORE_ASSIGN_OR_RETURN(const DocumentRow row, RequireDocument(sql, {collection, document}));
      range.document_id = row.id;
    }
    STORE_ASSIGN_OR_RETURN(std::vector<TrainingJobRow> rows, ListTrainingJobRows(sql, range));
    const bool more = rows.size() > page.size;
    if (more) rows.pop_back();
    STORE_ASSIGN_OR_RETURN(result.items, LoadJobs(sql, rows));
    if (more) result.next_token = MakePageToken(list, absl::StrCat(rows.back().id));
    return absl::OkStatus();
  }));
  return result;
}

absl::StatusOr<uint64_t> StoreImpl::CountOpenTrainingJobs() {
  int64_t count = 0;
  STORE_RETURN_IF_ERROR(registry().Read([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(count, CountOpenTrainingJobRows(sql));
    return absl::OkStatus();
  }));
  return static_cast<uint64_t>(count);
}

absl::StatusOr<std::optional<TrainingJob>> StoreImpl::ClaimTrainingJob(absl::Duration time) {
  // Replicas look often and seldom find one.
  STORE_ASSIGN_OR_RETURN(const uint64_t open, CountOpenTrainingJobs());
  std::optional<TrainingJob> job;
  if (open == 0) return job;
  const absl::Time now = Now();
  STORE_RETURN_IF_ERROR(registry().Write([&](Sql& sql) -> absl::Status {
    job.reset();
    for (int64_t after = 0; !job.has_value();) {
      STORE_ASSIGN_OR_RETURN(const std::optional<TrainingJobRow> row,
                             FindUnclaimedTrainingJob(sql, parts_.instance, now, after));
      if (!row.has_value()) return absl::OkStatus();
      after = row->id;
      STORE_ASSIGN_OR_RETURN(job, LoadJob(sql, *row));  // nothing where it is damaged
    }
    return PutTrainingClaim(sql, job->id, {parts_.instance, now + time});
  }));
  return job;
}

absl::StatusOr<TrainingJobRow> StoreImpl::RequireOwnJob(Sql& sql, int64_t id) {
  STORE_ASSIGN_OR_RETURN(TrainingJobRow row, RequireOpenJob(sql, id));
  STORE_ASSIGN_OR_RETURN(const std::optional<TrainingClaim> claim, FindTrainingClaim(sql, id));
  if (claim.has_value() && claim->instance != parts_.instance && claim->expires > Now()) {
    return absl::AbortedError(absl::StrCat("another replica works on training job ", id));
  }
  return row;
}

absl::Status StoreImpl::KeepTrainingJob(int64_t id, absl::Duration time,
                                        const std::string& report) {
  return registry().Write([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(TrainingJobRow row, RequireOwnJob(sql, id));
    row.report = report;
    row.updated = Now();
    STORE_RETURN_IF_ERROR(UpdateTrainingJobRow(sql, row));
    return PutTrainingClaim(sql, id, {parts_.instance, Now() + time});
  });
}

absl::StatusOr<TrainingJob> StoreImpl::UpdateTrainingJob(int64_t id, const TrainingJobEdit& edit) {
  const auto change = [&](Sql& sql, std::vector<IntentFile>& deleted) -> absl::Status {
    const bool cancels = edit.state == TrainingJobState::kCancelled;
    STORE_ASSIGN_OR_RETURN(TrainingJobRow row,
                           cancels ? RequireOpenJob(sql, id) : RequireOwnJob(sql, id));
    return EditJob(sql, std::move(row), edit, Now(), deleted);
  };
  const bool ends = edit.state.has_value() && HasEnded(*edit.state);
  STORE_RETURN_IF_ERROR(ends ? parts_.publisher->Delete(change)
                             : parts_.publisher->Commit(nullptr, change));
  return GetTrainingJob(id);
}

absl::Status StoreImpl::PublishTrainingCheckpoint(int64_t id, const NewFile& checkpoint,
                                                  const std::string& report) {
  STORE_RETURN_IF_ERROR(CheckFileName(checkpoint.name));
  STORE_RETURN_IF_ERROR(registry().Read([&](Sql& sql) { return RequireOwnJob(sql, id).status(); }));
  STORE_ASSIGN_OR_RETURN(const std::unique_ptr<WrittenBatch> batch,
                         parts_.publisher->Write({{&checkpoint, ArtifactKind::kCheckpoint}}));
  return parts_.publisher->Commit(
      batch.get(), [&](Sql& sql, std::vector<IntentFile>& deleted) -> absl::Status {
        STORE_ASSIGN_OR_RETURN(TrainingJobRow row, RequireOwnJob(sql, id));
        row.report = report;
        row.updated = Now();
        return ReplaceCheckpoint(sql, std::move(row), batch->files().front(), deleted);
      });
}

}  // namespace docmem::store
