#include "server/services/health_service.h"

#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "docmem/v1/adapter.grpc.pb.h"
#include "docmem/v1/admin.grpc.pb.h"
#include "docmem/v1/collection.grpc.pb.h"
#include "docmem/v1/document.grpc.pb.h"
#include "docmem/v1/query.grpc.pb.h"
#include "docmem/v1/training.grpc.pb.h"

namespace docmem::server {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

HealthService::HealthService(const Lifecycle* lifecycle, std::function<bool()> alive)
    : lifecycle_(lifecycle),
      alive_(std::move(alive)),
      names_({"", v1::CollectionService::service_full_name(),
              v1::DocumentService::service_full_name(), v1::AdapterService::service_full_name(),
              v1::TrainingService::service_full_name(), v1::QueryService::service_full_name(),
              v1::AdminService::service_full_name()}) {}

HealthService::Status HealthService::StatusOf(const std::string& name) const {
  const auto serving = [](bool good) {
    return good ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
  };
  if (name == kLivenessName) return serving(alive_());
  if (names_.contains(name)) return serving(lifecycle_->ready());
  return HealthCheckResponse::SERVICE_UNKNOWN;
}

grpc::Status HealthService::Check(grpc::ServerContext* /*context*/,
                                  const HealthCheckRequest* request,
                                  HealthCheckResponse* response) {
  const Status status = StatusOf(request->service());
  if (status == HealthCheckResponse::SERVICE_UNKNOWN) {
    return {grpc::StatusCode::NOT_FOUND,
            "no service of this name; \"\", a service's full name and "
            "docmem.liveness are served"};
  }
  response->set_status(status);
  return grpc::Status::OK;
}

grpc::Status HealthService::Watch(grpc::ServerContext* context, const HealthCheckRequest* request,
                                  grpc::ServerWriter<HealthCheckResponse>* writer) {
  constexpr int kMaxWatchers = 16;
  constexpr absl::Duration kInterval = absl::Milliseconds(100);
  const int watchers = ++watchers_;
  HealthCheckResponse response;
  bool connected = watchers <= kMaxWatchers;
  for (bool first = true, last = false; connected && !last && !context->IsCancelled();
       first = false) {
    last = closed_;
    const Status status = StatusOf(request->service());
    if (first || status != response.status()) {
      response.set_status(status);
      connected = writer->Write(response);
    }
    if (!last) absl::SleepFor(kInterval);
  }
  --watchers_;
  if (watchers > kMaxWatchers) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, "too many watchers of health at once"};
  }
  if (closed_) return {grpc::StatusCode::UNAVAILABLE, "the daemon has stopped"};
  return {grpc::StatusCode::CANCELLED, "the watch ended"};
}

}  // namespace docmem::server
