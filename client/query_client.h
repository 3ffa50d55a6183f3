#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/connection.h"
#include "client/options.h"
#include "docmem/v1/query.pb.h"

namespace docmem::client {

/// What Ask tells while it runs, on the thread that called it. All may be empty. `started` and
/// `progress` may come again when the call is tried again; `delta` never repeats text.
struct AskEvents {
  std::function<void(const v1::Started&)> started;
  std::function<void(const v1::Progress&)> progress;
  std::function<void(const v1::Delta&)> delta;
};

/// A whole answer.
struct Answer {
  v1::Started started;
  std::string text;
  std::vector<v1::TokenLogProbability> log_probabilities;  ///< empty unless asked for
  v1::Finished finished;
};

/// Questions. Thread-safe. Requests, replies and errors are those of docmem/v1/query.proto.
class QueryClient {
 public:
  explicit QueryClient(std::shared_ptr<const Connection> connection);
  ~QueryClient();

  /// Blocks until the answer has ended. On failure the text delivered so far stands for nothing.
  /// UNAVAILABLE where the connection was lost; such a call is repeated only before its first
  /// delta.
  absl::StatusOr<v1::Finished> Ask(const v1::AskRequest& request, const AskEvents& events,
                                   const CallOptions& options = {});
  absl::StatusOr<Answer> Ask(const v1::AskRequest& request, const CallOptions& options = {});
  absl::StatusOr<v1::ScoreResponse> Score(const v1::ScoreRequest& request,
                                          const CallOptions& options = {});
  absl::StatusOr<v1::AbortResponse> Abort(const v1::AbortRequest& request,
                                          const CallOptions& options = {});
  absl::StatusOr<v1::RouteResponse> Route(const v1::RouteRequest& request,
                                          const CallOptions& options = {});

 private:
  struct Stub;
  const std::shared_ptr<const Connection> connection_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace docmem::client
