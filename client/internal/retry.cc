#include "client/internal/retry.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/random/random.h"
#include "client/error.h"
#include "docmem/v1/errors.pb.h"

namespace docmem::client::internal {
namespace {

enum class Class { kNever, kRefused, kInterrupted };

// The table of docmem/v1/errors.proto. A refusal came before any work; an interruption didn't.
Class Classify(const absl::Status& status, const std::string& name) {
  v1::ErrorReason reason;
  if (!v1::ErrorReason_Parse(name, &reason)) return Class::kNever;
  const bool unavailable = absl::IsUnavailable(status);
  const bool exhausted = absl::IsResourceExhausted(status);
  switch (reason) {
    case v1::STARTING:
    case v1::DRAINING:
      return unavailable ? Class::kRefused : Class::kNever;
    case v1::SHUTTING_DOWN:
    case v1::REGISTRY_UNAVAILABLE:
    case v1::ARTIFACTS_UNAVAILABLE:
      return unavailable ? Class::kInterrupted : Class::kNever;
    case v1::QUEUE_FULL:
    case v1::QUOTA_MAX_IN_FLIGHT:
    case v1::QUOTA_MAX_QUEUED:
      return exhausted ? Class::kRefused : Class::kNever;
    default:
      return Class::kNever;
  }
}

absl::Duration Backoff(const RetryPolicy& policy, int attempt) {
  return std::min(policy.max_backoff,
                  policy.initial_backoff * std::pow(2.0, std::min(attempt - 1, 30)));
}

absl::Duration Jittered(const RetryPolicy& policy, absl::Duration delay) {
  if (policy.jitter <= 0) return delay;
  absl::InsecureBitGen random;
  return delay * (1 + absl::Uniform(random, 0.0, policy.jitter));
}

std::optional<absl::Duration> DelayBeforeNext(const RetryPolicy& policy, Repeat repeat,
                                              const Outcome& outcome, int attempt) {
  if (!policy.enabled || outcome.delivered) return std::nullopt;
  if (outcome.lost) {
    if (repeat == Repeat::kUnsafe || attempt >= policy.max_attempts) return std::nullopt;
    return Jittered(policy, Backoff(policy, attempt));
  }
  const ErrorDetail detail = DetailOf(outcome.status);
  const Class kind = Classify(outcome.status, detail.reason);
  if (kind == Class::kNever) return std::nullopt;
  if (kind == Class::kInterrupted && repeat == Repeat::kUnsafe) return std::nullopt;
  return Jittered(policy, detail.retry_delay.value_or(Backoff(policy, attempt)));
}

}  // namespace

absl::Status RunWithRetries(const RetryPolicy& policy, Clock* clock, absl::Time deadline,
                            Repeat repeat, const CallOptions& options,
                            const std::function<Outcome()>& attempt) {
  for (int number = 1;; ++number) {
    const Outcome outcome = attempt();
    if (outcome.status.ok()) return outcome.status;
    if (options.stop.stop_requested()) return absl::CancelledError("stopped");
    const auto delay = DelayBeforeNext(policy, repeat, outcome, number);
    if (!delay || clock->Now() + *delay >= deadline) return outcome.status;
    if (options.on_retry) options.on_retry({outcome.status, *delay, number});
    if (!clock->Sleep(*delay, options.stop)) return absl::CancelledError("stopped");
  }
}

}  // namespace docmem::client::internal
