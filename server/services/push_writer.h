#pragma once

#include <grpcpp/support/status.h>

#include <deque>
#include <functional>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/time/clock.h"
#include "adapter_store/sync.h"
#include "server/runtime/timer.h"
#include "server/services/server_stream.h"

namespace docmem::server {

/// The outgoing half of a stream whose messages come when they come: what can't be written yet
/// waits, and new messages may be merged into the last waiting one, so that a slow reader costs
/// little memory. A reader that takes nothing for `kSlowClientLimit` is reported once. Thread-safe.
template <class Reactor, class Response>
class PushWriter {
 public:
  /// `on_slow` runs on the timer's thread; it shall end the work and then `Close`.
  PushWriter(Reactor* reactor, Timer* timer, std::function<void()> on_slow)
      : reactor_(reactor), timer_(timer), on_slow_(std::move(on_slow)) {}

  /// Writes `message`, unless `merge` takes it into a message that still waits (returns true).
  void Push(Response message, absl::FunctionRef<bool(Response*)> merge) {
    store::MutexLock lock(&mutex_);
    if (closing_ || finished_) return;
    // The front one is being written and mustn't change.
    if (waiting_.size() > 1 && merge(&waiting_.back())) return;
    waiting_.push_back(std::move(message));
    if (waiting_.size() == 1) WriteFront();
  }

  /// Finishes with `status` behind what waits; at once when the reader is slow or gone.
  void Close(const grpc::Status& status) {
    store::MutexLock lock(&mutex_);
    if (finished_ || closing_) return;
    closing_ = status;
    if (waiting_.empty() || stuck_) Finish();
  }

  /// From the reactor's OnWriteDone. False when the client is gone.
  bool WriteDone(bool ok) {
    Timer::Id timer = 0;
    {
      store::MutexLock lock(&mutex_);
      timer = std::exchange(slow_timer_, 0);
      stuck_ = !ok;
      waiting_.pop_front();
      if (!ok) waiting_.clear();
      if (!finished_ && !waiting_.empty()) {
        WriteFront();
      } else if (!finished_ && closing_) {
        Finish();
      }
    }
    timer_->Cancel(timer);
    return ok;
  }

 private:
  void WriteFront() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    slow_timer_ = timer_->At(absl::Now() + kSlowClientLimit, [this] { Slow(); });
    reactor_->StartWrite(&waiting_.front());
  }

  void Slow() {
    {
      store::MutexLock lock(&mutex_);
      if (finished_ || slow_timer_ == 0) return;
      stuck_ = true;
      if (closing_) Finish();
    }
    on_slow_();
  }

  void Finish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    finished_ = true;
    reactor_->Finish(*closing_);
  }

  Reactor* const reactor_;
  Timer* const timer_;
  const std::function<void()> on_slow_;

  store::Mutex mutex_;
  std::deque<Response> waiting_ ABSL_GUARDED_BY(mutex_);  // the front one is being written
  std::optional<grpc::Status> closing_ ABSL_GUARDED_BY(mutex_);
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool stuck_ ABSL_GUARDED_BY(mutex_) = false;
  Timer::Id slow_timer_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace docmem::server
