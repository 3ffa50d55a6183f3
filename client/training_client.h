#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection.h"
#include "client/options.h"
#include "docmem/v1/training.pb.h"

namespace docmem::client {

/// Trainings of adapters. Thread-safe. Requests, replies and errors are those of
/// docmem/v1/training.proto.
class TrainingClient {
 public:
  explicit TrainingClient(std::shared_ptr<const Connection> connection);
  ~TrainingClient();

  absl::StatusOr<v1::TrainingJob> Start(const v1::StartTrainingRequest& request,
                                        const CallOptions& options = {});
  absl::StatusOr<v1::TrainingJob> Get(const v1::GetTrainingJobRequest& request,
                                      const CallOptions& options = {});
  absl::StatusOr<v1::ListTrainingJobsResponse> List(const v1::ListTrainingJobsRequest& request,
                                                    const CallOptions& options = {});
  /// Blocks until the job has ended; `event` is told on this thread.
  absl::Status Watch(const v1::WatchTrainingRequest& request,
                     const std::function<void(const v1::TrainingEvent&)>& event,
                     const CallOptions& options = {});
  absl::StatusOr<v1::TrainingJob> Cancel(const v1::CancelTrainingRequest& request,
                                         const CallOptions& options = {});

 private:
  struct Stub;
  const std::shared_ptr<const Connection> connection_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace docmem::client
