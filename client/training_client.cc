#include "client/training_client.h"

#include <utility>

#include "client/internal/unary.h"
#include "docmem/v1/training.grpc.pb.h"

namespace docmem::client {
namespace {

using Rpc = v1::TrainingService::StubInterface;
using internal::Attempt;
using internal::Repeat;
using internal::Unary;

bool HasEnded(const v1::TrainingJob& job) {
  return job.state() == v1::TrainingJob::STATE_SUCCEEDED ||
         job.state() == v1::TrainingJob::STATE_FAILED ||
         job.state() == v1::TrainingJob::STATE_CANCELLED;
}

}  // namespace

struct TrainingClient::Stub {
  std::unique_ptr<Rpc> rpc;
};

TrainingClient::TrainingClient(std::shared_ptr<const Connection> connection)
    : connection_(std::move(connection)),
      stub_(new Stub{v1::TrainingService::NewStub(connection_->channel().channel())}) {}

TrainingClient::~TrainingClient() = default;

absl::StatusOr<v1::TrainingJob> TrainingClient::Start(const v1::StartTrainingRequest& request,
                                                      const CallOptions& options) {
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::Start, request,
               {.document = internal::DocumentHeader(request.collection(), request.document())},
               options);
}

absl::StatusOr<v1::TrainingJob> TrainingClient::Get(const v1::GetTrainingJobRequest& request,
                                                    const CallOptions& options) {
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::Get, request, {Repeat::kSafe},
               options);
}

absl::StatusOr<v1::ListTrainingJobsResponse> TrainingClient::List(
    const v1::ListTrainingJobsRequest& request, const CallOptions& options) {
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::List, request, {Repeat::kSafe},
               options);
}

absl::Status TrainingClient::Watch(const v1::WatchTrainingRequest& request,
                                   const std::function<void(const v1::TrainingEvent&)>& event,
                                   const CallOptions& options) {
  const internal::Call call{Repeat::kSafe, absl::InfiniteDuration()};
  return connection_->channel().Run(call, options, [&](grpc::ClientContext* context) {
    const auto reader = stub_->rpc->Watch(context, request);
    Attempt attempt{.complete = false};
    v1::TrainingEvent message;
    while (reader->Read(&message)) {
      attempt.complete = message.has_job() && HasEnded(message.job());
      event(message);
    }
    attempt.status = reader->Finish();
    return attempt;
  });
}

absl::StatusOr<v1::TrainingJob> TrainingClient::Cancel(const v1::CancelTrainingRequest& request,
                                                       const CallOptions& options) {
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::Cancel, request, {Repeat::kUnsafe},
               options);
}

}  // namespace docmem::client
