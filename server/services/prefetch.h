#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "adapter_store/adapter_store.h"
#include "adapter_store/sync.h"
#include "docmem/v1/document.pb.h"
#include "server/interceptors/call.h"
#include "server/interceptors/late.h"
#include "server/runtime/residency.h"

namespace docmem::server {

/// One Prefetch: begins the loads that the request names and answers with where each memory is,
/// at once or, with `wait`, when the last is loaded. Holds no thread meanwhile. A client that
/// leaves, the deadline and the daemon's end close it at once; loads that have begun go on. Deletes
/// itself.
class PrefetchCall final : public grpc::ServerUnaryReactor,
                           public std::enable_shared_from_this<PrefetchCall> {
 public:
  /// `store` and `residency` must outlive the call; request and response live until it has ended.
  static grpc::ServerUnaryReactor* Start(const ServiceContext& services,
                                         const Late<store::AdapterStore>* store,
                                         const Late<Residency>* residency,
                                         grpc::CallbackServerContext* context,
                                         const v1::PrefetchRequest* request,
                                         v1::PrefetchResponse* response);

  void OnCancel() override;  // grpc
  void OnDone() override;

 private:
  struct Wanted {
    store::DocumentKey document;
    store::Cache cache;
    std::optional<store::Adapter> adapter;
  };

  PrefetchCall(const ServiceContext& services, const Late<store::AdapterStore>* store,
               const Late<Residency>* residency, grpc::CallbackServerContext* context,
               const v1::PrefetchRequest* request, v1::PrefetchResponse* response);
  void Begin();
  absl::Status FindAll();
  absl::StatusOr<Wanted> Find(const std::string& id);
  void Load();
  void Loaded(const absl::Status& status);
  void Cut(const absl::Status& why);
  void End(const absl::Status& status);
  void Report(const Wanted& wanted);

  Call call_;
  const Late<store::AdapterStore>* const store_;
  const Late<Residency>* const residency_;
  const v1::PrefetchRequest* const request_;
  v1::PrefetchResponse* const response_;
  const bool wait_;
  std::shared_ptr<PrefetchCall> self_;  // until gRPC is done with the reactor
  std::vector<Wanted> wanted_;          // doesn't change once the loads begin

  store::Mutex mutex_;
  bool request_read_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status cut_ ABSL_GUARDED_BY(mutex_);  // while the request was being read
  size_t open_loads_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status first_error_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace docmem::server
