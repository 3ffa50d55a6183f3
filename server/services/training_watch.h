#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <memory>
#include <string>

#include "docmem/v1/training.pb.h"
#include "server/interceptors/call.h"
#include "server/interceptors/late.h"
#include "server/jobs/training.h"
#include "server/services/push_writer.h"

namespace docmem::server {

/// One Watch: streams a training's states and steps. Steps that the client hasn't taken yet give
/// way to later ones; a client that leaves changes nothing. Deletes itself.
class TrainingWatch final : public grpc::ServerWriteReactor<v1::TrainingEvent>,
                            public TrainingSink,
                            public std::enable_shared_from_this<TrainingWatch> {
 public:
  using Reactor = grpc::ServerWriteReactor<v1::TrainingEvent>;

  static Reactor* Start(const ServiceContext& services, const Late<Trainings>* trainings,
                        grpc::CallbackServerContext* context,
                        const v1::WatchTrainingRequest* request);

  void OnReport(const TrainingReport& report) override;  // TrainingSink
  void OnStep(const TrainingStep& step) override;
  void OnClosed(const absl::Status& status) override;

  void OnWriteDone(bool ok) override;  // grpc
  void OnCancel() override;
  void OnDone() override;

 private:
  TrainingWatch(const ServiceContext& services, const Late<Trainings>* trainings,
                grpc::CallbackServerContext* context, const v1::WatchTrainingRequest* request);
  void Begin();
  void Close(const absl::Status& status);
  void Cut(const absl::Status& status);

  const Late<Trainings>* const trainings_;
  const std::string job_id_;
  Call call_;
  std::shared_ptr<TrainingWatch> self_;  // until gRPC is done with the reactor
  PushWriter<Reactor, v1::TrainingEvent> writer_;

  store::Mutex mutex_;
  uint64_t sink_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace docmem::server
