#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "client/options.h"

namespace docmem::client {

namespace internal {
class RetryingChannel;
}

/// One connection to a daemon, shared by any number of clients and threads. Made at the first call
/// and made again when it broke; calls are tried again as options say. Thread-safe.
class Connection {
 public:
  /// INVALID_ARGUMENT where address or token are malformed, a certificate lacks its key, or the
  /// token would be readable on its way. Doesn't reach for the daemon yet.
  static absl::StatusOr<std::shared_ptr<const Connection>> Open(
      const ConnectionOptions& options = {});
  ~Connection();

  /// For this library's own clients.
  const internal::RetryingChannel& channel() const { return *channel_; }

 private:
  explicit Connection(std::unique_ptr<internal::RetryingChannel> channel);
  const std::unique_ptr<internal::RetryingChannel> channel_;
};

}  // namespace docmem::client
