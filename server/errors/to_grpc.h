#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace docmem::server {

inline constexpr size_t kMaxErrorMessageBytes = 1000;
inline constexpr size_t kMaxErrorDetailsBytes = 4000;

/// The one place where a status becomes gRPC's, with google.rpc details:
///   ErrorInfo     always; the details of the status are its metadata
///   BadRequest    INVALID_ARGUMENT with the detail "field"
///   ResourceInfo  details "resource_type" and "resource_name", or those that the reason implies
///   RetryInfo     reasons for which trying again can help; the detail "retry_after_ms" or a
///   default
/// Message and details are cut to the limits above (longest metadata first), at whole characters.
/// A status without a reason gets the one its code implies. UNKNOWN becomes INTERNAL, OUT_OF_RANGE
/// INVALID_ARGUMENT.
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace docmem::server
