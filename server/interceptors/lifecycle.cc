#include "server/interceptors/lifecycle.h"

#include "server/errors/error.h"

namespace docmem::server {

absl::Status Lifecycle::Accepts(Availability availability) const {
  if (availability == Availability::kAlways) return absl::OkStatus();
  if (!loaded_.load()) {
    return Error(absl::StatusCode::kUnavailable, reason::kStarting,
                 "the daemon is still loading; try again in a moment");
  }
  if (draining() && availability == Availability::kServing) {
    return Error(absl::StatusCode::kUnavailable, reason::kDraining,
                 "the daemon is draining and takes no new work; ask another replica or later");
  }
  return absl::OkStatus();
}

}  // namespace docmem::server
