#include "server/interceptors/guard.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "absl/time/clock.h"
#include "server/errors/error.h"

namespace docmem::server {
namespace {

class OpenAuthenticator : public Authenticator {
 public:
  absl::StatusOr<Principal> Authenticate(std::string_view) const override {
    return Principal{"anonymous", Role::kAdmin};
  }
};

absl::Time DeadlineOf(const grpc::ServerContextBase& context, const Method& method) {
  const absl::Time now = absl::Now();
  const auto given = context.deadline();
  const bool none = given == std::chrono::system_clock::time_point::max() ||
                    absl::FromChrono(given) > now + absl::Hours(24 * 365);
  if (none && method.deadline == absl::InfiniteDuration()) return absl::InfiniteFuture();
  const absl::Time wanted = none ? now + method.deadline : absl::FromChrono(given);
  return std::min(wanted, now + kMaximumDeadline);
}

}  // namespace

std::unique_ptr<Authenticator> MakeOpenAuthenticator() {
  return std::make_unique<OpenAuthenticator>();
}

absl::StatusOr<Admission> Guard::Admit(const grpc::ServerContextBase& context,
                                       const Method& method) const {
  const auto& headers = context.client_metadata();
  const auto header = headers.find("authorization");
  std::string_view authorization;
  if (header != headers.end()) authorization = {header->second.data(), header->second.size()};

  absl::StatusOr<Principal> principal = authenticator_->Authenticate(authorization);
  if (!principal.ok()) return principal.status();
  if (principal->role < method.role) {
    return Error(absl::StatusCode::kPermissionDenied, reason::kNotPermitted,
                 "these credentials don't allow " + std::string(method.label));
  }
  if (absl::Status status = lifecycle_->Accepts(method.availability); !status.ok()) return status;
  const absl::Time deadline = DeadlineOf(context, method);
  if (deadline <= absl::Now()) {
    return Error(absl::StatusCode::kDeadlineExceeded, reason::kDeadlinePassed,
                 "the deadline passed before work began");
  }
  return Admission{*std::move(principal), deadline};
}

}  // namespace docmem::server
