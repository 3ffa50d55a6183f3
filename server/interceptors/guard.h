#pragma once

#include <grpcpp/server_context.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/interceptors/lifecycle.h"
#include "server/interceptors/methods.h"

namespace docmem::server {

/// Who calls.
struct Principal {
  std::string name;
  Role role = Role::kQuery;
};

/// Turns the `authorization` header (empty: absent) into a principal. Thread-safe.
class Authenticator {
 public:
  virtual ~Authenticator() = default;
  /// UNAUTHENTICATED.
  virtual absl::StatusOr<Principal> Authenticate(std::string_view authorization) const = 0;
};

/// Everybody is `anonymous` with all rights: for loopback, or where the operator said so.
std::unique_ptr<Authenticator> MakeOpenAuthenticator();

/// A call that may proceed.
struct Admission {
  Principal principal;
  /// The client's, or the method's default; never more than `kMaximumDeadline` from now.
  absl::Time deadline;
};

/// What every handler asks first, before it looks at the request: who is it, may they, is the
/// daemon ready for it. Thread-safe.
class Guard {
 public:
  /// Both must outlive the guard.
  Guard(const Authenticator* authenticator, const Lifecycle* lifecycle)
      : authenticator_(authenticator), lifecycle_(lifecycle) {}

  /// UNAUTHENTICATED, PERMISSION_DENIED, UNAVAILABLE or DEADLINE_EXCEEDED, in this order.
  absl::StatusOr<Admission> Admit(const grpc::ServerContextBase& context,
                                  const Method& method) const;

 private:
  const Authenticator* const authenticator_;
  const Lifecycle* const lifecycle_;
};

}  // namespace docmem::server
