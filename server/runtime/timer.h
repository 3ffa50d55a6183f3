#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <unordered_map>
#include <utility>

#include "absl/time/time.h"
#include "adapter_store/sync.h"

namespace docmem::server {

/// Runs callbacks at given times on one thread of its own: deadlines, heartbeats, slow clients.
/// Callbacks must not block. Thread-safe.
class Timer {
 public:
  using Id = uint64_t;

  Timer();
  /// Drops what hasn't run and joins the thread.
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  /// `when` in the past runs at once; `absl::InfiniteFuture()` never. The id is never 0.
  Id At(absl::Time when, std::function<void()> callback);
  /// When it returns, the callback has run, runs no more, or runs on this very thread; unknown ids
  /// are ignored. Don't hold a lock that the callback takes.
  void Cancel(Id id);

 private:
  void Run();

  store::Mutex mutex_;
  store::CondVar wake_;
  store::CondVar idle_;
  std::map<std::pair<absl::Time, Id>, std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<Id, absl::Time> when_ ABSL_GUARDED_BY(mutex_);
  Id next_ ABSL_GUARDED_BY(mutex_) = 1;
  Id running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace docmem::server
