#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapter_store/status_macros.h"
#include "adapter_store/sync.h"

namespace docmem::store {

/// Up to `most` connections that readers take and give back, opened when they are first needed.
/// Thread-safe; waits where all are taken.
template <class Connection>
class ConnectionPool {
 public:
  using Open = std::function<absl::StatusOr<std::unique_ptr<Connection>>()>;

  ConnectionPool(size_t most, Open open) : most_(most), open_connection_(std::move(open)) {}

  absl::StatusOr<std::unique_ptr<Connection>> Take() {
    {
      MutexLock lock(&mutex_);
      while (idle_.empty() && open_ == most_) given_back_.Wait(&mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<Connection> connection = std::move(idle_.back());
        idle_.pop_back();
        return connection;
      }
      ++open_;
    }
    absl::StatusOr<std::unique_ptr<Connection>> connection = open_connection_();
    if (!connection.ok()) Drop();
    return connection;
  }

  void GiveBack(std::unique_ptr<Connection> connection) {
    MutexLock lock(&mutex_);
    idle_.push_back(std::move(connection));
    given_back_.Signal();
  }

  /// Instead of giving back one that was taken and has broken.
  void Drop() {
    MutexLock lock(&mutex_);
    --open_;
    given_back_.Signal();
  }

 private:
  const size_t most_;
  const Open open_connection_;
  Mutex mutex_;
  CondVar given_back_;
  size_t open_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<Connection>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace docmem::store
