#pragma once

#include <cstddef>
#include <deque>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "adapter_store/sync.h"

namespace docmem::server {

/// A few threads for work that may block: registry, files, digests, decoding. Tasks start in the
/// order they came. Thread-safe; tasks may submit tasks.
class Executor {
 public:
  using Task = absl::AnyInvocable<void()>;
  struct Options {
    int threads = 4;
    size_t max_queued = 1024;  ///< new work beyond this is refused; `Run` isn't bound by it
  };

  explicit Executor(const Options& options);
  /// Closes.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// For new work. False, without running it, when the queue is full or closed.
  [[nodiscard]] bool TryRun(Task task);
  /// For the next piece of admitted work, which is bounded by what was admitted. On the calling
  /// thread once closed.
  void Run(Task task);
  /// Refuses new work, runs what is queued and joins the threads. Idempotent; not from a task.
  void Close();

  size_t queued() const;

 private:
  void Work();

  const size_t max_queued_;
  mutable store::Mutex mutex_;
  store::CondVar wake_;
  std::deque<Task> queue_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace docmem::server
