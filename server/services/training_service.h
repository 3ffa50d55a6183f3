#pragma once

#include "docmem/v1/training.grpc.pb.h"
#include "server/interceptors/call.h"
#include "server/interceptors/late.h"
#include "server/jobs/training.h"

namespace docmem::server {

/// docmem.v1.TrainingService over the training queue. Reactors never block.
class TrainingService final : public v1::TrainingService::CallbackService {
 public:
  /// `trainings` must outlive the service.
  TrainingService(ServiceContext services, const Late<Trainings>* trainings);
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
  const Late<Trainings>* const trainings_;
};

}  // namespace docmem::server
