#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <memory>

#include "docmem/v1/query.pb.h"
#include "server/query/asker.h"
#include "server/services/live_call.h"

namespace docmem::server {

/// One Score: hands the question with its answer in and collects the log-probabilities. Deletes
/// itself.
class ScoreCall final : public grpc::ServerUnaryReactor,
                        public AnswerSink,
                        public std::enable_shared_from_this<ScoreCall> {
 public:
  static grpc::ServerUnaryReactor* Start(const ServiceContext& services, const Late<Asker>* asker,
                                         grpc::CallbackServerContext* context,
                                         const v1::ScoreRequest* request,
                                         v1::ScoreResponse* response);

  void OnStarted(const AnswerStarted& started) override;  // AnswerSink
  void OnProgress(const AnswerProgress& progress) override;
  void OnDelta(AnswerDelta delta) override;
  void OnFinished(const AnswerFinished& finished) override;
  void OnClosed(const absl::Status& status) override;

  void OnCancel() override;  // grpc
  void OnDone() override;

 private:
  ScoreCall(const ServiceContext& services, const Late<Asker>* asker,
            grpc::CallbackServerContext* context, const v1::ScoreRequest* request,
            v1::ScoreResponse* response);
  void Begin();

  Call call_;
  LiveCall question_;
  const v1::ScoreRequest* const request_;
  v1::ScoreResponse* const response_;
  std::shared_ptr<ScoreCall> self_;  // until gRPC is done with the reactor
};

}  // namespace docmem::server
