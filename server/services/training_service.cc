#include "server/services/training_service.h"

#include <utility>

#include "server/services/find_training.h"
#include "server/services/training_messages.h"
#include "server/services/training_watch.h"
#include "server/services/unary.h"
#include "server/services/validate.h"

namespace docmem::server {
namespace {

absl::Status Give(const absl::StatusOr<TrainingReport>& report, v1::TrainingJob* response) {
  if (report.ok()) *response = ToMessage(*report);
  return report.status();
}

}  // namespace

// Here, so that the stubs' many templates are compiled in one file.
TrainingService::TrainingService(ServiceContext services, const Late<Trainings>* trainings)
    : services_(services), trainings_(trainings) {}
TrainingService::~TrainingService() = default;

grpc::ServerUnaryReactor* TrainingService::Start(grpc::CallbackServerContext* context,
                                                 const v1::StartTrainingRequest* request,
                                                 v1::TrainingJob* response) {
  return RunUnary(services_, method::kTrainingStart, context, [=, this](Call& call) {
    const auto key = CheckKey(call, request->collection(), request->document());
    if (!key.ok()) return key.status();
    auto training = ToTrainingRequest(request->options());
    if (!training.ok()) return training.status();
    return Give((*trainings_)->Start(*key, *std::move(training)), response);
  });
}

grpc::ServerUnaryReactor* TrainingService::Get(grpc::CallbackServerContext* context,
                                               const v1::GetTrainingJobRequest* request,
                                               v1::TrainingJob* response) {
  return RunUnary(services_, method::kTrainingGet, context, [=, this](Call& call) {
    if (absl::Status status = CheckId("job_id", request->job_id()); !status.ok()) return status;
    return Give(FindTraining(call, **trainings_, request->job_id()), response);
  });
}

grpc::ServerUnaryReactor* TrainingService::List(grpc::CallbackServerContext* context,
                                                const v1::ListTrainingJobsRequest* request,
                                                v1::ListTrainingJobsResponse* response) {
  return RunUnary(services_, method::kTrainingList, context, [=, this](Call& call) {
    const auto collection = CheckCollection(call, request->collection());
    if (!collection.ok()) return collection.status();
    const auto page = CheckPage(request->page_size(), request->page_token());
    if (!page.ok()) return page.status();
    if (!request->document().empty()) {
      if (absl::Status status = CheckId("document", request->document()); !status.ok()) {
        return status;
      }
    }
    auto found = (*trainings_)->List(*collection, request->document(), *page);
    if (!found.ok()) return found.status();
    for (const TrainingReport& report : found->items) *response->add_jobs() = ToMessage(report);
    response->set_next_page_token(std::move(found->next_token));
    return absl::OkStatus();
  });
}

grpc::ServerWriteReactor<v1::TrainingEvent>* TrainingService::Watch(
    grpc::CallbackServerContext* context, const v1::WatchTrainingRequest* request) {
  return TrainingWatch::Start(services_, trainings_, context, request);
}

grpc::ServerUnaryReactor* TrainingService::Cancel(grpc::CallbackServerContext* context,
                                                  const v1::CancelTrainingRequest* request,
                                                  v1::TrainingJob* response) {
  return RunUnary(services_, method::kTrainingCancel, context, [=, this](Call& call) {
    if (absl::Status status = CheckId("job_id", request->job_id()); !status.ok()) return status;
    const auto found = FindTraining(call, **trainings_, request->job_id());
    if (!found.ok()) return found.status();
    return Give((*trainings_)->Cancel(request->job_id()), response);
  });
}

}  // namespace docmem::server
