#include "server/services/ask_stream.h"

#include <utility>

#include "server/services/question_messages.h"

namespace docmem::server {
namespace {

bool KeepApart(v1::AskResponse* /*waiting*/) { return false; }

}  // namespace

grpc::ServerWriteReactor<v1::AskResponse>* AskStream::Start(const ServiceContext& services,
                                                            const Late<Asker>* asker,
                                                            grpc::CallbackServerContext* context,
                                                            const v1::AskRequest* request) {
  auto stream = std::shared_ptr<AskStream>(new AskStream(services, asker, context, request));
  stream->self_ = stream;
  if (!services.executor->TryRun([stream] { stream->Begin(); })) {
    stream->OnClosed(ExecutorFull());
  }
  return stream.get();
}

AskStream::AskStream(const ServiceContext& services, const Late<Asker>* asker,
                     grpc::CallbackServerContext* context, const v1::AskRequest* request)
    : call_(services, method::kAsk, context),
      question_(asker),
      request_(request),
      log_probabilities_(request->log_probabilities()),
      writer_(this, services.timer, [this] {
        question_.End(Error(absl::StatusCode::kUnavailable, reason::kSlowClient,
                            "the client read nothing for 30 s"));
      }) {}

void AskStream::Begin() {
  absl::Status status = call_.Admit([weak = weak_from_this()](const absl::Status& why) {
    if (const auto stream = weak.lock()) stream->question_.End(why);
  });
  if (status.ok()) {
    absl::StatusOr<Question> question = ToQuestion(*request_, call_);
    status = question.ok() ? question_.Submit(*std::move(question), shared_from_this())
                           : question.status();
  }
  if (!status.ok()) OnClosed(status);
}

void AskStream::OnStarted(const AnswerStarted& started) {
  call_.About(started.document.collection, started.document.id);
  v1::AskResponse response;
  *response.mutable_started() = ToMessage(started);
  writer_.Push(std::move(response), KeepApart);
}

void AskStream::OnProgress(const AnswerProgress& progress) {
  v1::AskResponse response;
  *response.mutable_progress() = ToMessage(progress);
  writer_.Push(response, [&response](v1::AskResponse* waiting) {
    if (!waiting->has_progress()) return false;
    *waiting = response;
    return true;
  });
}

void AskStream::OnDelta(AnswerDelta delta) {
  v1::AskResponse response;
  *response.mutable_delta() = ToMessage(delta, log_probabilities_);
  writer_.Push(response, [&response](v1::AskResponse* waiting) {
    if (!waiting->has_delta()) return false;
    v1::Delta* const into = waiting->mutable_delta();
    into->mutable_text()->append(response.delta().text());
    into->set_tokens(into->tokens() + response.delta().tokens());
    into->mutable_log_probabilities()->MergeFrom(response.delta().log_probabilities());
    return true;
  });
}

void AskStream::OnFinished(const AnswerFinished& finished) {
  v1::AskResponse response;
  *response.mutable_finished() = ToMessage(finished);
  writer_.Push(std::move(response), KeepApart);
}

void AskStream::OnClosed(const absl::Status& status) {
  question_.Closed();
  writer_.Close(call_.Finish(status));
}

void AskStream::OnWriteDone(bool ok) {
  if (!writer_.WriteDone(ok)) question_.End(ClientGone());
}

void AskStream::OnCancel() { question_.End(ClientGone()); }

void AskStream::OnDone() { self_.reset(); }

}  // namespace docmem::server
