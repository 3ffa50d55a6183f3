#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace docmem::client::internal {

/// Under this name a status carries gRPC's error details, a serialized google.rpc.Status.
inline constexpr char kDetailsUrl[] = "type.googleapis.com/google.rpc.Status";
inline constexpr char kErrorDomain[] = "docmem";

/// The one place where gRPC's status becomes ours, details included.
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace docmem::client::internal
