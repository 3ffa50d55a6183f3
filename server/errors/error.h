#pragma once

#include <string>

#include "absl/status/status.h"
#include "adapter_store/errors.h"

namespace docmem::server {

/// Reasons that the server itself gives, beside those of the store; each is a name of the wire
/// contract's ErrorReason.
namespace reason {
using namespace store::reason;  // NOLINT: one vocabulary
inline constexpr char kContextTooLong[] = "CONTEXT_TOO_LONG";
inline constexpr char kCacheAmbiguous[] = "CACHE_AMBIGUOUS";
inline constexpr char kChecksumMismatch[] = "CHECKSUM_MISMATCH";
inline constexpr char kStreamIncomplete[] = "STREAM_INCOMPLETE";
inline constexpr char kAdapterInvalid[] = "ADAPTER_INVALID";
inline constexpr char kNoDocumentFits[] = "NO_DOCUMENT_FITS";
inline constexpr char kRequestIdInUse[] = "REQUEST_ID_IN_USE";
inline constexpr char kIdentityMismatch[] = "IDENTITY_MISMATCH";
inline constexpr char kAdapterMismatch[] = "ADAPTER_MISMATCH";
inline constexpr char kAdapterOtherBase[] = "ADAPTER_OTHER_BASE";
inline constexpr char kNoCurrentAdapter[] = "NO_CURRENT_ADAPTER";
inline constexpr char kOptionsDiffer[] = "OPTIONS_DIFFER";
inline constexpr char kQueueFull[] = "QUEUE_FULL";
inline constexpr char kQuotaMaxInFlight[] = "QUOTA_MAX_IN_FLIGHT";
inline constexpr char kQuotaMaxQueued[] = "QUOTA_MAX_QUEUED";
inline constexpr char kCredentialsMissing[] = "CREDENTIALS_MISSING";
inline constexpr char kCredentialsInvalid[] = "CREDENTIALS_INVALID";
inline constexpr char kNotPermitted[] = "NOT_PERMITTED";
inline constexpr char kDeadlinePassed[] = "DEADLINE_PASSED";
inline constexpr char kStarting[] = "STARTING";
inline constexpr char kDraining[] = "DRAINING";
inline constexpr char kRecoveryMode[] = "RECOVERY_MODE";
inline constexpr char kShuttingDown[] = "SHUTTING_DOWN";
inline constexpr char kSlowClient[] = "SLOW_CLIENT";
inline constexpr char kAbortedByClient[] = "ABORTED_BY_CLIENT";
inline constexpr char kClientGone[] = "CLIENT_GONE";
inline constexpr char kNotImplemented[] = "NOT_IMPLEMENTED";
inline constexpr char kAdapterUnsupported[] = "ADAPTER_UNSUPPORTED";
inline constexpr char kInternalFault[] = "INTERNAL_FAULT";
inline constexpr char kNumericFault[] = "NUMERIC_FAULT";
}  // namespace reason

using ErrorDetails = store::ErrorDetails;

/// A status with reason and details as the store makes them; to_grpc.h says what becomes of which
/// detail. Messages are for people and never hold text of users.
inline absl::Status Error(absl::StatusCode code, const char* reason, const std::string& message,
                          const ErrorDetails& details = {}) {
  return store::StoreError(code, reason, message, details);
}

/// INVALID_ARGUMENT that blames one request field, e.g. "prompt.question".
inline absl::Status InvalidField(const std::string& field, const std::string& message,
                                 const char* reason = reason::kInvalidField) {
  return Error(absl::StatusCode::kInvalidArgument, reason, field + ": " + message,
               {{"field", field}});
}

}  // namespace docmem::server
