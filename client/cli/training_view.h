#pragma once

#include <ostream>

#include "absl/status/status.h"
#include "client/cli/session.h"
#include "docmem/v1/training.pb.h"

namespace docmem::cli {

/// Everything about a training job, for people.
void PrintJob(const v1::TrainingJob& job, std::ostream& out);

/// Follows a job until it has ended: steps and losses on a terminal, with JSON one event a line.
absl::Status FollowJob(const Session& session, const std::string& job_id);

}  // namespace docmem::cli
