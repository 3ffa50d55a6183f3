#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/connection.h"
#include "client/options.h"

namespace docmem::client {

/// The daemon's health, on a connection to its health address, which is another than the API's.
/// Thread-safe.
class HealthClient {
 public:
  explicit HealthClient(std::shared_ptr<const Connection> connection);
  ~HealthClient();

  /// Whether `service` is SERVING: "" asks for readiness, "docmem.liveness" for liveness. NOT_FOUND
  /// for a name the daemon doesn't know, UNIMPLEMENTED at an address without the health service.
  absl::StatusOr<bool> IsServing(const std::string& service, const CallOptions& options = {});

 private:
  struct Stub;
  const std::shared_ptr<const Connection> connection_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace docmem::client
