#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "adapter_store/sync.h"

namespace docmem::server {

/// For tests: something that happens once, and that any thread can wait for. What stood before
/// Notify() stands before the end of a wait in ThreadSanitizer's eyes too, unlike with Debian's
/// absl::Notification, which isn't instrumented.
class TestEvent {
 public:
  void Notify() {
    const store::MutexLock lock(&mutex_);
    happened_ = true;
    changed_.SignalAll();
  }
  /// False when `patience` passed first.
  bool WaitFor(absl::Duration patience) {
    const absl::Time end = absl::Now() + patience;
    const store::MutexLock lock(&mutex_);
    while (!happened_ && absl::Now() < end) changed_.WaitFor(&mutex_, end - absl::Now());
    return happened_;
  }
  void Wait() { WaitFor(absl::InfiniteDuration()); }
  bool HasHappened() { return WaitFor(absl::ZeroDuration()); }

 private:
  store::Mutex mutex_;
  store::CondVar changed_;
  bool happened_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace docmem::server
