#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <chrono>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "adapter_store/sync.h"
#include "server/interceptors/guard.h"
#include "server/interceptors/methods.h"
#include "server/interceptors/open_calls.h"
#include "server/runtime/executor.h"
#include "server/runtime/timer.h"
#include "server/telemetry/audit_log.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"

namespace docmem::server {

/// What all services share; the parts outlive them.
struct ServiceContext {
  const Guard* guard = nullptr;
  OpenCalls* open_calls = nullptr;
  Executor* executor = nullptr;
  Timer* timer = nullptr;
  Metrics* metrics = nullptr;
  Log* log = nullptr;
  AuditLog* audit = nullptr;  ///< null: none is kept
  /// Between two messages of a client's stream. A call may well be silent for a minute or two.
  absl::Duration silent_client_limit = absl::Minutes(5);
};

/// One RPC from its arrival to its status: guard, deadline, count, log and audit line, so that
/// handlers mention none of these. Used by one thread at a time, but for `Finish`, which the cut
/// may call as soon as `Admit` has begun.
class Call {
 public:
  /// On arrival, where gRPC hands the call in. `method` is one of the constants of methods.h.
  /// Nothing of `context` is read later: a call that a client cancels may have ended, and the
  /// context be gone, before the executor comes to it. For the same reason whoever can be ended
  /// before `Admit` has returned keeps the request in a copy.
  Call(const ServiceContext& services, const Method& method,
       const grpc::CallbackServerContext* context);
  /// A call that wasn't finished counts as CANCELLED.
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// The first thing a handler does; on the executor. `cut` ends the call from outside, see
  /// `OpenCalls`; empty for calls that end soon by themselves.
  absl::Status Admit(OpenCalls::Cut cut = {});

  // After an OK `Admit`.
  const Principal& principal() const { return *caller_; }
  absl::Time deadline() const { return deadline_; }

  /// What the call is about, for its audit line; several ids add up, one that was said before
  /// counts once. Ids that were checked for form only; either may be empty.
  void About(const std::string& collection, const std::string& id);
  /// The request id that the caller gave and that was checked for form, or sees in the response;
  /// a call without has one that was drawn.
  void Named(const std::string& request_id);

  /// Once, last: what to finish the reactor with. Don't hold a lock that the cut takes.
  grpc::Status Finish(const absl::Status& status);

 private:
  void LogFailure(const absl::Status& status, const AuditEntry& entry) const;

  const ServiceContext services_;
  const Method& method_;
  const absl::Time arrived_;
  const absl::StatusOr<Principal> caller_;
  const std::chrono::system_clock::time_point client_deadline_;
  absl::Time deadline_;
  store::Mutex mutex_;
  AuditEntry entry_ ABSL_GUARDED_BY(mutex_);  // for the log too
  OpenCalls::Id open_ ABSL_GUARDED_BY(mutex_) = 0;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

/// RESOURCE_EXHAUSTED for a call that the executor has no room for.
absl::Status ExecutorFull();

}  // namespace docmem::server
