#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "adapter_store/sync.h"
#include "server/runtime/timer.h"

namespace docmem::server {

/// The calls that are being answered: each ends at its deadline, and all of them when the daemon
/// stops. Thread-safe.
class OpenCalls {
 public:
  using Id = uint64_t;
  /// Ends a call with a status, from any thread; comes at most once, also while the call ends by
  /// itself or just after: it must hold what it needs (or a weak pointer to it). Must not block.
  using Cut = std::function<void(const absl::Status&)>;

  /// `timer` must outlive this.
  explicit OpenCalls(Timer* timer) : timer_(timer) {}
  OpenCalls(const OpenCalls&) = delete;
  OpenCalls& operator=(const OpenCalls&) = delete;

  /// An empty `cut` is a call that ends soon by itself.
  Id Enter(absl::Time deadline, Cut cut);
  /// Unknown ids are ignored. Don't hold a lock that `cut` takes.
  void Leave(Id id);

  /// Ends all calls that can be ended.
  void CutAll(const absl::Status& status);
  /// False when `deadline` came first.
  bool WaitUntilEmpty(absl::Time deadline);
  size_t count() const;

 private:
  struct Entry {
    Timer::Id timer = 0;
    Cut cut;
  };
  void CutOne(Id id, const absl::Status& status);

  Timer* const timer_;
  mutable store::Mutex mutex_;
  store::CondVar changed_;
  std::map<Id, Entry> calls_ ABSL_GUARDED_BY(mutex_);
  Id next_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace docmem::server
