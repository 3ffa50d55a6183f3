#include "client/query_client.h"

#include <utility>

#include "client/internal/unary.h"
#include "docmem/v1/query.grpc.pb.h"

namespace docmem::client {
namespace {

using Rpc = v1::QueryService::StubInterface;
using internal::Attempt;
using internal::Repeat;
using internal::Unary;

internal::Call QuestionCall(const v1::MemorySelection& memory) {
  return {.repeat = Repeat::kSafe,
          .default_timeout = internal::kQuestionTimeout,
          .document = internal::DocumentHeader(memory.collection(), memory.document())};
}

Attempt TryAsk(Rpc* rpc, grpc::ClientContext* context, const v1::AskRequest& request,
               const AskEvents& events, v1::Finished* finished) {
  const auto reader = rpc->Ask(context, request);
  Attempt attempt{.complete = false};
  v1::AskResponse response;
  while (reader->Read(&response)) {
    if (response.has_started() && events.started) events.started(response.started());
    if (response.has_progress() && events.progress) events.progress(response.progress());
    if (response.has_delta()) {
      attempt.delivered = true;
      if (events.delta) events.delta(response.delta());
    }
    if (response.has_finished()) {
      attempt.complete = true;
      *finished = std::move(*response.mutable_finished());
    }
  }
  attempt.status = reader->Finish();
  return attempt;
}

}  // namespace

struct QueryClient::Stub {
  std::unique_ptr<Rpc> rpc;
};

QueryClient::QueryClient(std::shared_ptr<const Connection> connection)
    : connection_(std::move(connection)),
      stub_(new Stub{v1::QueryService::NewStub(connection_->channel().channel())}) {}

QueryClient::~QueryClient() = default;

absl::StatusOr<v1::Finished> QueryClient::Ask(const v1::AskRequest& request,
                                              const AskEvents& events, const CallOptions& options) {
  v1::Finished finished;
  absl::Status status = connection_->channel().Run(
      QuestionCall(request.memory()), options, [&](grpc::ClientContext* context) {
        return TryAsk(stub_->rpc.get(), context, request, events, &finished);
      });
  if (!status.ok()) return status;
  return finished;
}

absl::StatusOr<Answer> QueryClient::Ask(const v1::AskRequest& request, const CallOptions& options) {
  Answer answer;
  const AskEvents events{.started = [&](const v1::Started& started) { answer.started = started; },
                         .delta =
                             [&](const v1::Delta& delta) {
                               answer.text += delta.text();
                               answer.log_probabilities.insert(answer.log_probabilities.end(),
                                                               delta.log_probabilities().begin(),
                                                               delta.log_probabilities().end());
                             }};
  absl::StatusOr<v1::Finished> finished = Ask(request, events, options);
  if (!finished.ok()) return finished.status();
  answer.finished = *std::move(finished);
  return answer;
}

absl::StatusOr<v1::ScoreResponse> QueryClient::Score(const v1::ScoreRequest& request,
                                                     const CallOptions& options) {
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::Score, request,
               QuestionCall(request.memory()), options);
}

absl::StatusOr<v1::AbortResponse> QueryClient::Abort(const v1::AbortRequest& request,
                                                     const CallOptions& options) {
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::Abort, request, {Repeat::kSafe},
               options);
}

absl::StatusOr<v1::RouteResponse> QueryClient::Route(const v1::RouteRequest& request,
                                                     const CallOptions& options) {
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::Route, request, {Repeat::kSafe},
               options);
}

}  // namespace docmem::client
