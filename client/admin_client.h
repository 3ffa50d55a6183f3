#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "client/connection.h"
#include "client/options.h"
#include "docmem/v1/admin.pb.h"

namespace docmem::client {

/// The daemon itself. Thread-safe. Requests, replies and errors are those of docmem/v1/admin.proto.
class AdminClient {
 public:
  explicit AdminClient(std::shared_ptr<const Connection> connection);
  ~AdminClient();

  absl::StatusOr<v1::GetStatusResponse> GetStatus(const CallOptions& options = {});
  absl::StatusOr<v1::ListResidentResponse> ListResident(const v1::ListResidentRequest& request,
                                                        const CallOptions& options = {});
  absl::StatusOr<v1::DrainResponse> Drain(const v1::DrainRequest& request,
                                          const CallOptions& options = {});

 private:
  struct Stub;
  const std::shared_ptr<const Connection> connection_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace docmem::client
