#include "server/errors/to_grpc.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "docmem/v1/errors.pb.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/errors/error.h"

namespace docmem::server {
namespace {

template <class Detail>
std::optional<Detail> Find(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  for (const auto& any : details.details()) {
    Detail detail;
    if (any.UnpackTo(&detail)) return detail;
  }
  return std::nullopt;
}

TEST(ToGrpc, AFieldThatIsToBlameIsNamed) {
  const grpc::Status status = ToGrpc(InvalidField("prompt.question", "is empty"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "prompt.question: is empty");
  EXPECT_EQ(Find<google::rpc::BadRequest>(status)->field_violations(0).field(), "prompt.question");
  const auto info = Find<google::rpc::ErrorInfo>(status);
  EXPECT_EQ(info->reason(), "INVALID_FIELD");
  EXPECT_EQ(info->domain(), "docmem");
  EXPECT_FALSE(Find<google::rpc::RetryInfo>(status));
}

TEST(ToGrpc, RetryIsAdvisedOnlyWhereItCanHelp) {
  const auto full = Error(absl::StatusCode::kResourceExhausted, reason::kQueueFull, "full",
                          {{"retry_after_ms", "2500"}});
  const auto retry = Find<google::rpc::RetryInfo>(ToGrpc(full));
  EXPECT_EQ(retry->retry_delay().seconds(), 2);
  EXPECT_EQ(retry->retry_delay().nanos(), 500'000'000);
  const auto starting = Error(absl::StatusCode::kUnavailable, reason::kStarting, "loading");
  EXPECT_TRUE(Find<google::rpc::RetryInfo>(ToGrpc(starting)));
  const auto slow = Error(absl::StatusCode::kUnavailable, reason::kSlowClient, "slow");
  EXPECT_FALSE(Find<google::rpc::RetryInfo>(ToGrpc(slow)));
}

TEST(ToGrpc, ResourcesAreNamed) {
  const auto status = ToGrpc(Error(absl::StatusCode::kNotFound, reason::kDocumentNotFound,
                                   "no document", {{"document", "d1"}}));
  const auto resource = Find<google::rpc::ResourceInfo>(status);
  EXPECT_EQ(resource->resource_type(), "document");
  EXPECT_EQ(resource->resource_name(), "d1");
}

TEST(ToGrpc, LongErrorsAreCutAtWholeCharactersSoThatTrailersHold) {
  std::string text;
  while (text.size() < 20'000) text += "\u00e4\u20ac\U0001F600";
  const auto status =
      ToGrpc(Error(absl::StatusCode::kInvalidArgument, reason::kCacheAmbiguous, text,
                   {{"field", text}, {"cache_ids", text}, {"document", "d1"}}));
  EXPECT_LE(status.error_message().size(), kMaxErrorMessageBytes);
  EXPECT_LE(status.error_details().size(), kMaxErrorDetailsBytes);
  const auto info = Find<google::rpc::ErrorInfo>(status);
  EXPECT_EQ(info->reason(), "CACHE_AMBIGUOUS");
  EXPECT_EQ(info->metadata().at("document"), "d1");
  EXPECT_GT(info->metadata().at("cache_ids").size(), 100U);
}

TEST(ToGrpc, AStatusWithoutReasonGetsTheOneItsCodeImplies) {
  EXPECT_EQ(Find<google::rpc::ErrorInfo>(ToGrpc(absl::DataLossError("x")))->reason(),
            "ARTIFACT_DAMAGED");
  const auto unknown = ToGrpc(absl::UnknownError("x"));
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(Find<google::rpc::ErrorInfo>(unknown)->reason(), "INTERNAL_FAULT");
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
}

TEST(ToGrpc, EveryReasonIsPartOfTheWireContract) {
  for (const char* name :
       {reason::kContextTooLong,      reason::kCacheAmbiguous,     reason::kChecksumMismatch,
        reason::kStreamIncomplete,    reason::kAdapterInvalid,     reason::kJobNotFound,
        reason::kRequestIdInUse,      reason::kIdentityMismatch,   reason::kAdapterMismatch,
        reason::kAdapterOtherBase,    reason::kNoCurrentAdapter,   reason::kOptionsDiffer,
        reason::kQueueFull,           reason::kQuotaMaxInFlight,   reason::kQuotaMaxQueued,
        reason::kCredentialsMissing,  reason::kCredentialsInvalid, reason::kNotPermitted,
        reason::kDeadlinePassed,      reason::kStarting,           reason::kDraining,
        reason::kShuttingDown,        reason::kSlowClient,         reason::kAbortedByClient,
        reason::kClientGone,          reason::kNotImplemented,     reason::kAdapterUnsupported,
        reason::kInternalFault,       reason::kNumericFault,       reason::kInvalidField,
        reason::kLimitExceeded,       reason::kCollectionNotFound, reason::kDocumentNotFound,
        reason::kCacheNotFound,       reason::kAdapterNotFound,    reason::kCollectionExists,
        reason::kDocumentExists,      reason::kRevisionMismatch,   reason::kAdapterIsCurrent,
        reason::kAdapterStale,        reason::kCollectionNotEmpty, reason::kCollectionProtected,
        reason::kDocumentNotReady,    reason::kTextNotRetained,    reason::kDeviceBudgetExceeded,
        reason::kHostBudgetExceeded,  reason::kDiskBudgetExceeded, reason::kQuotaMaxBytes,
        reason::kQuotaMaxDocuments,   reason::kDiskFull,           reason::kArtifactDamaged,
        reason::kDocumentQuarantined, reason::kRecoveryMode,       reason::kRegistryUnavailable,
        reason::kJobFinished,         reason::kNoDocumentFits,     reason::kLexicalIndexOff,
        reason::kArtifactsUnavailable}) {
    v1::ErrorReason value;
    EXPECT_TRUE(v1::ErrorReason_Parse(name, &value)) << name;
  }
}

}  // namespace
}  // namespace docmem::server
