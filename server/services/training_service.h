#pragma once

#include "docmem/v1/training.grpc.pb.h"
#include "server/interceptors/call.h"

namespace docmem::server {

/// docmem.v1.TrainingService. This version doesn't train: every method answers UNIMPLEMENTED,
/// after the guard.
class TrainingService final : public v1::TrainingService::CallbackService {
 public:
  explicit TrainingService(ServiceContext services);
  ~TrainingService() override;

  grpc::ServerUnaryReactor* Start(grpc::CallbackServerContext* context,
                                  const v1::StartTrainingRequest* request,
                                  v1::TrainingJob* response) override;
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context,
                                const v1::GetTrainingJobRequest* request,
                                v1::TrainingJob* response) override;
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context,
                                 const v1::ListTrainingJobsRequest* request,
                                 v1::ListTrainingJobsResponse* response) override;
  grpc::ServerWriteReactor<v1::TrainingEvent>* Watch(
      grpc::CallbackServerContext* context, const v1::WatchTrainingRequest* request) override;
  grpc::ServerUnaryReactor* Cancel(grpc::CallbackServerContext* context,
                                   const v1::CancelTrainingRequest* request,
                                   v1::TrainingJob* response) override;

 private:
  const ServiceContext services_;
};

}  // namespace docmem::server
