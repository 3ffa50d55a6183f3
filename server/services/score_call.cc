#include "server/services/score_call.h"

#include <utility>

#include "server/services/question_messages.h"

namespace docmem::server {

grpc::ServerUnaryReactor* ScoreCall::Start(const ServiceContext& services, const Late<Asker>* asker,
                                           grpc::CallbackServerContext* context,
                                           const v1::ScoreRequest* request,
                                           v1::ScoreResponse* response) {
  auto call =
      std::shared_ptr<ScoreCall>(new ScoreCall(services, asker, context, request, response));
  call->self_ = call;
  if (!services.executor->TryRun([call] { call->Begin(); })) call->OnClosed(ExecutorFull());
  return call.get();
}

ScoreCall::ScoreCall(const ServiceContext& services, const Late<Asker>* asker,
                     grpc::CallbackServerContext* context, const v1::ScoreRequest* request,
                     v1::ScoreResponse* response)
    : call_(services, method::kScore, context),
      question_(asker),
      request_(request),
      response_(response) {}

void ScoreCall::Begin() {
  absl::Status status = call_.Admit([weak = weak_from_this()](const absl::Status& why) {
    if (const auto call = weak.lock()) call->question_.End(why);
  });
  if (status.ok()) {
    absl::StatusOr<Question> question = ToQuestion(*request_, call_);
    status = question.ok() ? question_.Submit(*std::move(question), shared_from_this())
                           : question.status();
  }
  if (!status.ok()) OnClosed(status);
}

void ScoreCall::OnStarted(const AnswerStarted& started) {
  call_.About(started.document.collection, started.document.id);
  *response_->mutable_started() = ToMessage(started);
}

void ScoreCall::OnProgress(const AnswerProgress& /*progress*/) {}

void ScoreCall::OnDelta(AnswerDelta delta) {
  AppendLogProbabilities(delta, response_->mutable_tokens());
}

void ScoreCall::OnFinished(const AnswerFinished& finished) {
  double sum = 0.0;
  for (const v1::TokenLogProbability& token : response_->tokens()) sum += token.log_probability();
  response_->set_log_probability(sum);
  response_->set_prompt_tokens(finished.prompt_tokens);
  response_->set_document_tokens_prefilled(finished.document_tokens_prefilled);
  *response_->mutable_seconds() = SecondsOf(finished);
}

void ScoreCall::OnClosed(const absl::Status& status) {
  question_.Closed();
  Finish(call_.Finish(status));
}

void ScoreCall::OnCancel() { question_.End(ClientGone()); }

void ScoreCall::OnDone() { self_.reset(); }

}  // namespace docmem::server
