#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <memory>

#include "docmem/v1/query.pb.h"
#include "server/query/asker.h"
#include "server/services/live_call.h"
#include "server/services/push_writer.h"

namespace docmem::server {

/// One Ask: hands the question in and streams what comes. Text that the client hasn't taken yet is
/// coalesced; a client that leaves ends its question. Deletes itself.
class AskStream final : public grpc::ServerWriteReactor<v1::AskResponse>,
                        public AnswerSink,
                        public std::enable_shared_from_this<AskStream> {
 public:
  static grpc::ServerWriteReactor<v1::AskResponse>* Start(const ServiceContext& services,
                                                          const Late<Asker>* asker,
                                                          grpc::CallbackServerContext* context,
                                                          const v1::AskRequest* request);

  void OnStarted(const AnswerStarted& started) override;  // AnswerSink
  void OnProgress(const AnswerProgress& progress) override;
  void OnDelta(AnswerDelta delta) override;
  void OnFinished(const AnswerFinished& finished) override;
  void OnClosed(const absl::Status& status) override;

  void OnWriteDone(bool ok) override;  // grpc
  void OnCancel() override;
  void OnDone() override;

 private:
  AskStream(const ServiceContext& services, const Late<Asker>* asker,
            grpc::CallbackServerContext* context, const v1::AskRequest* request);
  void Begin();

  Call call_;
  LiveCall question_;
  const v1::AskRequest* const request_;
  const bool log_probabilities_;
  std::shared_ptr<AskStream> self_;  // until gRPC is done with the reactor
  PushWriter<grpc::ServerWriteReactor<v1::AskResponse>, v1::AskResponse> writer_;
};

}  // namespace docmem::server
