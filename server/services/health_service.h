#pragma once

#include <atomic>
#include <functional>
#include <set>
#include <string>

#include "grpc/health/v1/health.grpc.pb.h"
#include "server/interceptors/lifecycle.h"

namespace docmem::server {

/// What asks for liveness; every other served name means readiness.
inline constexpr char kLivenessName[] = "docmem.liveness";

/// grpc.health.v1.Health, synchronous: for a server and threads of its own, so that it answers
/// whatever the API's threads do. Needs no credentials.
class HealthService final : public grpc::health::v1::Health::Service {
 public:
  /// `alive` is asked at each check of liveness and must not block; `lifecycle` must outlive this.
  HealthService(const Lifecycle* lifecycle, std::function<bool()> alive);

  grpc::Status Check(grpc::ServerContext* context,
                     const grpc::health::v1::HealthCheckRequest* request,
                     grpc::health::v1::HealthCheckResponse* response) override;
  /// At most 16 at a time, since each holds a thread.
  grpc::Status Watch(grpc::ServerContext* context,
                     const grpc::health::v1::HealthCheckRequest* request,
                     grpc::ServerWriter<grpc::health::v1::HealthCheckResponse>* writer) override;

  /// Ends every watch within 0.1 s, behind the status that holds now. Thread-safe.
  void Close() { closed_ = true; }

 private:
  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;
  Status StatusOf(const std::string& name) const;

  const Lifecycle* const lifecycle_;
  const std::function<bool()> alive_;
  const std::set<std::string> names_;
  std::atomic<int> watchers_{0};
  std::atomic<bool> closed_{false};
};

}  // namespace docmem::server
