#include "server/interceptors/guard.h"

#include <grpc/grpc_security_constants.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/errors/error.h"

namespace docmem::server {
namespace {

// What the transport has verified of the client's certificate.
std::vector<std::string> CertificateNames(const grpc::ServerContextBase& context) {
  std::vector<std::string> names;
  const std::shared_ptr<const grpc::AuthContext> peer = context.auth_context();
  if (peer == nullptr || !peer->IsPeerAuthenticated()) return names;
  for (const char* property : {GRPC_X509_SAN_PROPERTY_NAME, GRPC_X509_CN_PROPERTY_NAME}) {
    for (const grpc::string_ref& name : peer->FindPropertyValues(property)) {
      names.emplace_back(name.data(), name.size());
    }
  }
  return names;
}

absl::StatusOr<Credentials> CredentialsOf(const grpc::ServerContextBase& context) {
  const auto [first, last] = context.client_metadata().equal_range("authorization");
  Credentials credentials{.certificate_names = CertificateNames(context)};
  if (first == last) return credentials;
  if (std::next(first) != last) {
    return Error(absl::StatusCode::kUnauthenticated, reason::kCredentialsInvalid,
                 "the header authorization came more than once");
  }
  credentials.authorization = {first->second.data(), first->second.size()};
  return credentials;
}

absl::Status CheckRights(const Principal& principal, const Method& method) {
  constexpr const char* kRoles[] = {"query", "write", "admin"};
  std::string needs;
  if (principal.role < method.role) {
    needs = absl::StrCat("the role ", kRoles[static_cast<int>(method.role)]);
  } else if (method.daemon_wide && !principal.collections.all()) {
    needs = "the right to all collections";
  } else {
    return absl::OkStatus();
  }
  return Error(absl::StatusCode::kPermissionDenied, reason::kNotPermitted,
               absl::StrCat(std::string(method.label), " needs ", needs));
}

absl::Time DeadlineOf(std::chrono::system_clock::time_point given, const Method& method) {
  const absl::Time now = absl::Now();
  const bool none = given == std::chrono::system_clock::time_point::max() ||
                    absl::FromChrono(given) > now + absl::Hours(24 * 365);
  if (none && method.deadline == absl::InfiniteDuration()) return absl::InfiniteFuture();
  const absl::Time wanted = none ? now + method.deadline : absl::FromChrono(given);
  return std::min(wanted, now + kMaximumDeadline);
}

}  // namespace

absl::StatusOr<Principal> Guard::Identify(const grpc::ServerContextBase& context) const {
  const absl::StatusOr<Credentials> credentials = CredentialsOf(context);
  if (!credentials.ok()) return credentials.status();
  return authenticator_->Authenticate(*credentials);
}

absl::StatusOr<absl::Time> Guard::Admit(const Principal& caller,
                                        std::chrono::system_clock::time_point client_deadline,
                                        const Method& method) const {
  if (absl::Status status = CheckRights(caller, method); !status.ok()) return status;
  if (absl::Status status = lifecycle_->Accepts(method.availability); !status.ok()) return status;
  const absl::Time deadline = DeadlineOf(client_deadline, method);
  if (deadline <= absl::Now()) {
    return Error(absl::StatusCode::kDeadlineExceeded, reason::kDeadlinePassed,
                 "the deadline passed before work began");
  }
  return deadline;
}

}  // namespace docmem::server
