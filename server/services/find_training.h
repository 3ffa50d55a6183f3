#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/interceptors/call.h"
#include "server/interceptors/principal.h"
#include "server/jobs/training.h"

namespace docmem::server {

/// A training that `caller` may know of. A training in a collection that isn't the caller's is as
/// absent as one that never was: NOT_FOUND (JOB_NOT_FOUND) in the same words. Executor.
absl::StatusOr<TrainingReport> FindTraining(const Principal& caller, Trainings& trainings,
                                            const std::string& id);
/// The same for a call, which is then about that training.
absl::StatusOr<TrainingReport> FindTraining(Call& call, Trainings& trainings,
                                            const std::string& id);

}  // namespace docmem::server
