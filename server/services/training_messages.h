#pragma once

#include "absl/status/statusor.h"
#include "docmem/v1/training.pb.h"
#include "server/jobs/training.h"

namespace docmem::server {

inline constexpr int kMaxQaPairs = 2000;
inline constexpr uint32_t kMaxSyntheticPairs = 2000;
inline constexpr size_t kMaxQaBytes = 65536;  ///< of a question, and of an answer

/// INVALID_ARGUMENT with the field's name: a value that is out of range, pairs for a supervision
/// that learns from the text, no pairs at all for one that learns from pairs.
absl::StatusOr<TrainingRequest> ToTrainingRequest(const v1::TrainingOptions& options);

v1::TrainingJob ToMessage(const TrainingReport& report);
v1::TrainingStep ToMessage(const TrainingStep& step);

}  // namespace docmem::server
