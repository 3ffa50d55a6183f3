#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "adapter_store/adapter_store.h"
#include "docmem/v1/document.pb.h"
#include "engine/formats/digest.h"
#include "server/jobs/training.h"
#include "server/services/live_build.h"
#include "server/services/live_call.h"
#include "server/services/push_writer.h"

namespace docmem::server {

/// One Ingest: receives header, chunks and end message, hands the document in, and streams progress
/// and result. Nothing is handed in without the end message. Deletes itself.
class IngestStream final : public grpc::ServerBidiReactor<v1::IngestRequest, v1::IngestResponse>,
                           public BuildSink,
                           public std::enable_shared_from_this<IngestStream> {
 public:
  using Reactor = grpc::ServerBidiReactor<v1::IngestRequest, v1::IngestResponse>;

  /// All must outlive the stream.
  struct Parts {
    const Late<Builds>* builds = nullptr;
    const Late<store::AdapterStore>* store = nullptr;
    const Late<Trainings>* trainings = nullptr;
  };

  static Reactor* Start(const ServiceContext& services, const Parts& parts,
                        grpc::CallbackServerContext* context);

  void OnProgress(const BuildProgress& progress) override;  // BuildSink
  void OnClosed(const absl::StatusOr<BuildResult>& result) override;

  void OnReadDone(bool ok) override;  // grpc
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  IngestStream(const ServiceContext& services, const Parts& parts,
               grpc::CallbackServerContext* context);
  void Begin();
  void Read();
  void Take(bool ok);
  absl::Status TakeMessage();
  absl::Status TakeHeader(const v1::IngestHeader& header);
  absl::Status TakeTraining(const v1::TrainingOptions& options, IngestRequest* request) const;
  absl::Status TakeChunk(const std::string& chunk);
  absl::Status TakeEnd(const v1::StreamEnd& end);
  void Close(const absl::Status& status);
  void Cut(const absl::Status& status);

  const ServiceContext services_;
  const Parts parts_;
  Call call_;
  LiveBuild build_;
  std::shared_ptr<IngestStream> self_;  // until gRPC is done with the reactor
  PushWriter<Reactor, v1::IngestResponse> writer_;

  // One message at a time.
  v1::IngestRequest message_;
  Timer::Id silence_ = 0;
  std::optional<IngestRequest> request_;
  bool detach_ = false;
  engine::Sha256 digest_;
  bool handed_in_ = false;

  store::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace docmem::server
