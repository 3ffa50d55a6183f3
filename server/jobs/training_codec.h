#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/jobs/training.h"
#include "training/qa_pair.h"

namespace docmem::server {

/// What a training goes on from after a restart, besides its checkpoint: the `request` of its row.
struct StoredTraining {
  TrainingRequest request;
  std::string text_sha256;              ///< of the document's text
  bool synthesized = false;             ///< the base model has written its pairs, maybe none
  std::vector<training::QaPair> pairs;  ///< those, with their chunks
};

std::string WriteTraining(const StoredTraining& training);
/// DATA_LOSS for bytes that `WriteTraining` hasn't made.
absl::StatusOr<StoredTraining> ReadTraining(const std::string& bytes);

/// What changes of a report, for the `report` of the row; the rest is in the row and its request.
std::string WriteReport(const TrainingReport& report);
/// Fills in what `WriteReport` has written. DATA_LOSS for other bytes; then `report` is unchanged.
absl::Status ReadReport(const std::string& bytes, TrainingReport* report);

/// "training-17" for row 17, and back; 0 for any other text.
std::string TrainingId(int64_t row);
int64_t RowOfTraining(const std::string& id);

}  // namespace docmem::server
