#include "server/services/training_service.h"

#include <memory>

#include "server/errors/error.h"
#include "server/services/server_stream.h"
#include "server/services/unary.h"

namespace docmem::server {
namespace {

absl::Status NoTraining(const Call&) { return NotImplemented("training"); }

}  // namespace

// Here, so that the stubs' many templates are compiled in one file.
TrainingService::TrainingService(ServiceContext services) : services_(services) {}
TrainingService::~TrainingService() = default;

grpc::ServerUnaryReactor* TrainingService::Start(grpc::CallbackServerContext* context,
                                                 const v1::StartTrainingRequest* /*request*/,
                                                 v1::TrainingJob* /*response*/) {
  return RunUnary(services_, method::kTrainingStart, context, NoTraining);
}

grpc::ServerUnaryReactor* TrainingService::Get(grpc::CallbackServerContext* context,
                                               const v1::GetTrainingJobRequest* /*request*/,
                                               v1::TrainingJob* /*response*/) {
  return RunUnary(services_, method::kTrainingGet, context, NoTraining);
}

grpc::ServerUnaryReactor* TrainingService::List(grpc::CallbackServerContext* context,
                                                const v1::ListTrainingJobsRequest* /*request*/,
                                                v1::ListTrainingJobsResponse* /*response*/) {
  return RunUnary(services_, method::kTrainingList, context, NoTraining);
}

grpc::ServerWriteReactor<v1::TrainingEvent>* TrainingService::Watch(
    grpc::CallbackServerContext* context, const v1::WatchTrainingRequest* /*request*/) {
  using Source = std::unique_ptr<MessageSource<v1::TrainingEvent>>;
  return ServerStream<v1::TrainingEvent>::Start(
      services_, method::kTrainingWatch, context,
      [](const Call& call) -> absl::StatusOr<Source> { return NoTraining(call); });
}

grpc::ServerUnaryReactor* TrainingService::Cancel(grpc::CallbackServerContext* context,
                                                  const v1::CancelTrainingRequest* /*request*/,
                                                  v1::TrainingJob* /*response*/) {
  return RunUnary(services_, method::kTrainingCancel, context, NoTraining);
}

}  // namespace docmem::server
