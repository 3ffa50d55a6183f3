#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "adapter_store/registry/registry.h"
#include "adapter_store/types.h"

namespace docmem::store {

/// A training job without its checkpoint, whose row is among the files.
struct TrainingJobRow {
  int64_t id = 0;
  int64_t document_id = 0;
  TrainingJobState state = TrainingJobState::kQueued;
  std::string request;
  std::string report;
  absl::Time created;
  absl::Time updated;
  bool damaged = false;  ///< read only: its checksum is wrong
};

/// Returns the new id, which is never used again.
absl::StatusOr<int64_t> InsertTrainingJob(Sql& sql, const TrainingJobRow& row);
absl::StatusOr<std::optional<TrainingJobRow>> FindTrainingJob(Sql& sql, int64_t id);

struct TrainingJobRange {
  int64_t collection_id = 0;
  int64_t document_id = 0;  ///< 0: all of the collection
  int64_t before = 0;       ///< ids below this one
  uint32_t limit = 0;
};

/// Newest first.
absl::StatusOr<std::vector<TrainingJobRow>> ListTrainingJobRows(Sql& sql,
                                                                const TrainingJobRange& range);
/// Visits every job of every document, oldest first.
absl::Status ScanTrainingJobs(Sql& sql,
                              absl::FunctionRef<absl::Status(const TrainingJobRow&)> on_job);
absl::Status UpdateTrainingJobRow(Sql& sql, const TrainingJobRow& row);
/// The row of its checkpoint goes with it.
absl::Status DeleteTrainingJobRow(Sql& sql, int64_t id);
/// The oldest job behind `after` that hasn't ended and that nobody but `instance` has claimed
/// beyond `now`; nothing where there is none. Locks it against other claims until the transaction
/// ends.
absl::StatusOr<std::optional<TrainingJobRow>> FindUnclaimedTrainingJob(Sql& sql,
                                                                       const std::string& instance,
                                                                       absl::Time now,
                                                                       int64_t after);
absl::StatusOr<int64_t> CountOpenTrainingJobRows(Sql& sql);

struct TrainingClaim {
  std::string instance;
  absl::Time expires;
};
/// Replaces the job's former claim.
absl::Status PutTrainingClaim(Sql& sql, int64_t job_id, const TrainingClaim& claim);
absl::StatusOr<std::optional<TrainingClaim>> FindTrainingClaim(Sql& sql, int64_t job_id);

/// Deletes the document's ended jobs but for the `keep` that ended last.
absl::Status DeleteOldTrainingJobRows(Sql& sql, int64_t document_id, uint32_t keep);

}  // namespace docmem::store
