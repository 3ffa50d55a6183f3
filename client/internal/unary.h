#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include "absl/status/statusor.h"
#include "client/internal/retrying_channel.h"

namespace docmem::client::internal {

/// One unary call of `method`, such as `&v1::AdminService::StubInterface::GetStatus`.
template <class Stub, class Request, class Response>
absl::StatusOr<Response> Unary(const RetryingChannel& channel, Stub* stub,
                               grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                            Response*),
                               const Request& request, const Call& call,
                               const CallOptions& options) {
  Response response;
  absl::Status status = channel.Run(call, options, [&](grpc::ClientContext* context) {
    response.Clear();
    return Attempt{.status = (stub->*method)(context, request, &response)};
  });
  if (!status.ok()) return status;
  return response;
}

}  // namespace docmem::client::internal
