#pragma once

#include <grpcpp/server_context.h>

#include <chrono>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/interceptors/authenticator.h"
#include "server/interceptors/lifecycle.h"
#include "server/interceptors/methods.h"
#include "server/interceptors/principal.h"

namespace docmem::server {

/// What every handler asks first, before it looks at the request: who is it, may they, is the
/// daemon ready for it. Whether they may use the collection that a request names is asked by
/// `CheckCollection`, through which every name of one passes. Thread-safe.
class Guard {
 public:
  /// Both must outlive the guard.
  Guard(const Authenticator* authenticator, const Lifecycle* lifecycle)
      : authenticator_(authenticator), lifecycle_(lifecycle) {}

  /// Who calls. UNAUTHENTICATED.
  absl::StatusOr<Principal> Identify(const grpc::ServerContextBase& context) const;

  /// Lets a call of `caller` proceed, until its deadline: the client's, or the method's default;
  /// never more than `kMaximumDeadline` from now. PERMISSION_DENIED, UNAVAILABLE or
  /// DEADLINE_EXCEEDED, in this order.
  absl::StatusOr<absl::Time> Admit(const Principal& caller,
                                   std::chrono::system_clock::time_point client_deadline,
                                   const Method& method) const;

 private:
  const Authenticator* const authenticator_;
  const Lifecycle* const lifecycle_;
};

}  // namespace docmem::server
