#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/telemetry/metrics.h"

namespace docmem::server {

/// Serves `/metrics` over plain HTTP from threads of its own.
class MetricsServer {
 public:
  /// `address` is HOST:PORT; port 0 is chosen by the system. UNAVAILABLE when the address is taken.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(const std::string& address,
                                                              const Metrics& metrics);
  ~MetricsServer();

  int port() const { return port_; }

 private:
  class Impl;
  MetricsServer(std::unique_ptr<Impl> impl, std::string host, int port);

  std::unique_ptr<Impl> impl_;
  const std::string host_;
  const int port_;
};

}  // namespace docmem::server
