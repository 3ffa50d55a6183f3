#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "adapter_store/sync.h"
#include "server/ingest/build.h"
#include "server/interceptors/late.h"

namespace docmem::server {

/// The build behind an open Ingest or BuildCache: started once, and left from outside at any
/// moment, also while it is being started. Thread-safe.
class LiveBuild {
 public:
  explicit LiveBuild(const Late<Builds>* builds) : builds_(builds) {}

  std::string kv_dtype() const { return (*builds_)->kv_dtype(); }  ///< see `Builds`

  /// `start` hands the build in; its failure is returned and nothing remains.
  absl::Status Start(absl::FunctionRef<absl::StatusOr<Builds::Ticket>(Builds&)> start) {
    absl::StatusOr<Builds::Ticket> ticket = start(**builds_);
    if (!ticket.ok()) return ticket.status();
    {
      store::MutexLock lock(&mutex_);
      ticket_ = *ticket;
      if (!left_) return absl::OkStatus();
    }
    (*builds_)->Leave(*ticket);
    return absl::OkStatus();
  }

  /// The sink is called no more.
  void Leave() {
    Builds::Ticket ticket;
    {
      store::MutexLock lock(&mutex_);
      left_ = true;
      ticket = std::exchange(ticket_, {});
    }
    if (ticket.job) (*builds_)->Leave(ticket);
  }

 private:
  const Late<Builds>* const builds_;
  store::Mutex mutex_;
  Builds::Ticket ticket_ ABSL_GUARDED_BY(mutex_);
  bool left_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace docmem::server
