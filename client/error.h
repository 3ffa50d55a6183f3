#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace docmem::client {

/// What a status says beyond code and message; see docmem/v1/errors.proto.
struct ErrorDetail {
  /// Name of a docmem.v1.ErrorReason; empty: docmemd didn't say this (the connection is lost, the
  /// deadline passed here, or another server answered).
  std::string reason;
  std::map<std::string, std::string> metadata;
  std::string field;  ///< of the request that is to blame; empty: none
  std::string resource_type;
  std::string resource_name;
  std::optional<absl::Duration> retry_delay;  ///< set where trying again can help
};

/// Reads the details of a status that a client of this library returned.
ErrorDetail DetailOf(const absl::Status& status);

}  // namespace docmem::client
