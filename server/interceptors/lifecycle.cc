#include "server/interceptors/lifecycle.h"

#include "server/errors/error.h"

namespace docmem::server {

absl::Status Lifecycle::Accepts(Availability availability) const {
  if (availability == Availability::kAlways) return absl::OkStatus();
  const bool recovers = recovers_.load();
  if (!opened_.load() && !recovers) {
    return Error(absl::StatusCode::kUnavailable, reason::kStarting,
                 "the daemon is still loading; try again in a moment");
  }
  if (recovers && availability == Availability::kServing) {
    return Error(
        absl::StatusCode::kUnavailable, reason::kRecoveryMode,
        "the daemon runs in recovery mode, without a model: it lists and deletes; start it "
        "without --recovery for everything else");
  }
  if (draining() && availability < Availability::kDraining) {
    return Error(absl::StatusCode::kUnavailable, reason::kDraining,
                 "the daemon is draining and takes no new work; ask another replica or later");
  }
  return absl::OkStatus();
}

}  // namespace docmem::server
