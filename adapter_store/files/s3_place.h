#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace docmem::store {

/// A bucket and how to reach it.
struct S3Place {
  std::string endpoint;  ///< https://HOST[:PORT] (or http), without a slash at its end
  std::string region;
  std::string bucket;
  std::string prefix;  ///< before every key; empty or ends with a slash
  std::string access_key;
  std::string secret_key;
  std::string session_token;  ///< empty: none
  std::string ca_file;        ///< empty: the system's
};

/// Reads s3://BUCKET[/PREFIX]; the rest comes from the variables that AWS's own programs read:
/// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION (else
/// AWS_DEFAULT_REGION, else us-east-1), AWS_ENDPOINT_URL_S3 (else AWS_ENDPOINT_URL, else Amazon's
/// of that region), AWS_CA_BUNDLE. INVALID_ARGUMENT naming what is missing or odd.
absl::StatusOr<S3Place> ParseS3Place(const std::string& where,
                                     absl::FunctionRef<const char*(const char*)> variable);

}  // namespace docmem::store
