#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <memory>

#include "adapter_store/adapter_store.h"
#include "docmem/v1/document.pb.h"
#include "server/services/live_build.h"
#include "server/services/live_call.h"
#include "server/services/push_writer.h"

namespace docmem::server {

/// One BuildCache: hands the build in and streams progress and result. Deletes itself.
class BuildStream final : public grpc::ServerWriteReactor<v1::BuildCacheResponse>,
                          public BuildSink,
                          public std::enable_shared_from_this<BuildStream> {
 public:
  using Reactor = grpc::ServerWriteReactor<v1::BuildCacheResponse>;

  static Reactor* Start(const ServiceContext& services, const Late<Builds>* builds,
                        const Late<store::AdapterStore>* store,
                        grpc::CallbackServerContext* context, const v1::BuildCacheRequest* request);

  void OnProgress(const BuildProgress& progress) override;  // BuildSink
  void OnClosed(const absl::StatusOr<BuildResult>& result) override;

  void OnWriteDone(bool ok) override;  // grpc
  void OnCancel() override;
  void OnDone() override;

 private:
  BuildStream(const ServiceContext& services, const Late<Builds>* builds,
              const Late<store::AdapterStore>* store, grpc::CallbackServerContext* context,
              const v1::BuildCacheRequest* request);
  void Begin();
  absl::StatusOr<CacheBuildRequest> Read();
  void Close(const absl::Status& status);
  void Cut(const absl::Status& status);

  const Late<store::AdapterStore>* const store_;
  const v1::BuildCacheRequest request_;
  Call call_;
  LiveBuild build_;
  std::shared_ptr<BuildStream> self_;  // until gRPC is done with the reactor
  PushWriter<Reactor, v1::BuildCacheResponse> writer_;

  store::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace docmem::server
