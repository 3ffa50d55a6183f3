#include "server/telemetry/metrics_server.h"

#include <prometheus/exposer.h>

#include <exception>
#include <utility>

#include "absl/status/status.h"

namespace docmem::server {

class MetricsServer::Impl {
 public:
  Impl(const std::string& address, const Metrics& metrics)
      : collectable(metrics.collectable()), exposer(address, 1) {
    exposer.RegisterCollectable(collectable);
  }
  const std::shared_ptr<prometheus::Collectable> collectable;
  prometheus::Exposer exposer;
};

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& address,
                                                                    const Metrics& metrics) {
  try {
    auto impl = std::make_unique<Impl>(address, metrics);
    const int port = impl->exposer.GetListeningPorts().at(0);
    return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(impl), port));
  } catch (const std::exception&) {
    return absl::UnavailableError("can't listen on " + address +
                                  " for metrics: it is in use or not an address of this machine");
  }
}

MetricsServer::MetricsServer(std::unique_ptr<Impl> impl, int port)
    : impl_(std::move(impl)), port_(port) {}
MetricsServer::~MetricsServer() = default;

}  // namespace docmem::server
