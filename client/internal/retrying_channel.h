#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/internal/retry.h"
#include "client/options.h"

namespace docmem::client::internal {

inline constexpr char kDocumentHeader[] = "docmem-document";
inline constexpr absl::Duration kQuestionTimeout = absl::Seconds(120);
inline constexpr absl::Duration kLongTimeout = absl::Hours(1);
inline constexpr absl::Duration kShortTimeout = absl::Seconds(30);

/// What is fixed about a call before its options.
struct Call {
  Repeat repeat = Repeat::kUnsafe;
  absl::Duration default_timeout = kShortTimeout;
  /// Value of `docmem-document`, by which routers keep a document on one replica; empty: none.
  std::string document;
};

/// "<collection>/<id>", with `default` for an empty collection; empty where either isn't a valid
/// id: such a header can't be sent, and the daemon refuses the request anyway.
std::string DocumentHeader(const std::string& collection, const std::string& document);

/// How one try ended, as an attempt function sees it.
struct Attempt {
  grpc::Status status;
  /// A stream brought its last message. Without it even an OK status is a lost connection.
  bool complete = true;
  bool delivered = false;  ///< see Outcome
  /// A failure on this side (a file, a digest): ends the call with it.
  absl::Status local;
};

/// A channel whose calls carry metadata and deadline, can be stopped, and are tried again where the
/// contract allows. Thread-safe.
class RetryingChannel {
 public:
  using AttemptFunction = std::function<Attempt(grpc::ClientContext*)>;

  /// Errors as of `Connection::Open`. Connects at the first call.
  static absl::StatusOr<std::unique_ptr<RetryingChannel>> Open(const ConnectionOptions& options);

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  /// `attempt` makes the RPC in the context it gets, on this thread, once for each try.
  absl::Status Run(const Call& call, const CallOptions& options,
                   const AttemptFunction& attempt) const;

 private:
  RetryingChannel(std::shared_ptr<grpc::Channel> channel, ConnectionOptions options)
      : channel_(std::move(channel)), options_(std::move(options)) {}
  Outcome TryOnce(const Call& call, absl::Time deadline, const std::stop_token& stop,
                  const AttemptFunction& attempt) const;

  const std::shared_ptr<grpc::Channel> channel_;
  const ConnectionOptions options_;
};

}  // namespace docmem::client::internal
