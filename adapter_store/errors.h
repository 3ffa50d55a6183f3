#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"

namespace docmem::store {

/// Machine-readable part of a status, spelled as the wire contract spells it; travels as a payload
/// of the status. The message is for people.
namespace reason {
inline constexpr char kInvalidField[] = "INVALID_FIELD";
inline constexpr char kLimitExceeded[] = "LIMIT_EXCEEDED";
inline constexpr char kImportInvalid[] = "IMPORT_INVALID";
inline constexpr char kCollectionNotFound[] = "COLLECTION_NOT_FOUND";
inline constexpr char kDocumentNotFound[] = "DOCUMENT_NOT_FOUND";
inline constexpr char kCacheNotFound[] = "CACHE_NOT_FOUND";
inline constexpr char kAdapterNotFound[] = "ADAPTER_NOT_FOUND";
inline constexpr char kJobNotFound[] = "JOB_NOT_FOUND";
inline constexpr char kCollectionExists[] = "COLLECTION_EXISTS";
inline constexpr char kDocumentExists[] = "DOCUMENT_EXISTS";
inline constexpr char kRevisionMismatch[] = "REVISION_MISMATCH";
inline constexpr char kAdapterIsCurrent[] = "ADAPTER_IS_CURRENT";
inline constexpr char kAdapterStale[] = "ADAPTER_STALE";
inline constexpr char kJobFinished[] = "JOB_FINISHED";
inline constexpr char kCollectionNotEmpty[] = "COLLECTION_NOT_EMPTY";
inline constexpr char kCollectionProtected[] = "COLLECTION_PROTECTED";
inline constexpr char kDocumentNotReady[] = "DOCUMENT_NOT_READY";
inline constexpr char kLexicalIndexOff[] = "LEXICAL_INDEX_OFF";
inline constexpr char kTextNotRetained[] = "TEXT_NOT_RETAINED";
inline constexpr char kDeviceBudgetExceeded[] = "DEVICE_BUDGET_EXCEEDED";
inline constexpr char kHostBudgetExceeded[] = "HOST_BUDGET_EXCEEDED";
inline constexpr char kDiskBudgetExceeded[] = "DISK_BUDGET_EXCEEDED";
inline constexpr char kQuotaMaxBytes[] = "QUOTA_MAX_BYTES";
inline constexpr char kQuotaMaxDocuments[] = "QUOTA_MAX_DOCUMENTS";
inline constexpr char kDiskFull[] = "DISK_FULL";
inline constexpr char kArtifactDamaged[] = "ARTIFACT_DAMAGED";
inline constexpr char kDocumentQuarantined[] = "DOCUMENT_QUARANTINED";
inline constexpr char kRegistryUnavailable[] = "REGISTRY_UNAVAILABLE";
inline constexpr char kArtifactsUnavailable[] = "ARTIFACTS_UNAVAILABLE";
}  // namespace reason

/// What a program may do something with, e.g. {"revision", "7"} or {"need_bytes", "4096"};
/// {"field", name} names the argument that is to blame.
using ErrorDetails = std::map<std::string, std::string>;

absl::Status StoreError(absl::StatusCode code, const char* reason, const std::string& message,
                        const ErrorDetails& details = {});

/// Empty where the status carries none (OK, or a fault of disk or code).
std::string ReasonOf(const absl::Status& status);
ErrorDetails DetailsOf(const absl::Status& status);

/// The same status with `context` before its message; keeps reason and details.
absl::Status WithContext(const absl::Status& status, const std::string& context);

}  // namespace docmem::store
