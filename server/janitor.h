#pragma once

#include "absl/time/time.h"
#include "adapter_store/adapter_store.h"
#include "adapter_store/sync.h"
#include "server/runtime/executor.h"
#include "server/runtime/timer.h"
#include "server/telemetry/log.h"

namespace docmem::server {

/// Collects the store's garbage now and then, on the executor, until it is destroyed.
class Janitor {
 public:
  struct Parts {
    store::AdapterStore* store = nullptr;
    Timer* timer = nullptr;
    Executor* executor = nullptr;
    Log* log = nullptr;
  };

  /// The parts must outlive the janitor.
  Janitor(Parts parts, absl::Duration interval);
  /// Waits for a round that runs. Close the executor only afterwards.
  ~Janitor();

 private:
  void Schedule() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Sweep();

  const Parts parts_;
  const absl::Duration interval_;
  store::Mutex mutex_;
  store::CondVar idle_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool sweeping_ ABSL_GUARDED_BY(mutex_) = false;
  Timer::Id timer_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace docmem::server
