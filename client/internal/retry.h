#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/options.h"

namespace docmem::client::internal {

/// Whether a call may have happened twice without harm.
enum class Repeat { kSafe, kUnsafe };

/// How one try ended.
struct Outcome {
  absl::Status status;
  /// The connection broke: no word of docmemd ended the call.
  bool lost = false;
  /// The caller has seen part of the result, so trying again would show it twice.
  bool delivered = false;
};

/// Tries until success, an error that the contract doesn't retry, the deadline, or a stop, which
/// gives CANCELLED. An error whose delay ends past the deadline is returned at once.
absl::Status RunWithRetries(const RetryPolicy& policy, Clock* clock, absl::Time deadline,
                            Repeat repeat, const CallOptions& options,
                            const std::function<Outcome()>& attempt);

}  // namespace docmem::client::internal
