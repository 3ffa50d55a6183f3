#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <utility>

#include "server/errors/from_exception.h"
#include "server/interceptors/call.h"

namespace docmem::server {

/// Answers a unary RPC whose handler may block: guard and handler run on the executor, the
/// reactor's thread returns at once. `handler` is `absl::Status(Call&)`; request and response
/// live until it has returned, even when the client is gone.
template <class Handler>
grpc::ServerUnaryReactor* RunUnary(const ServiceContext& services, const Method& method,
                                   grpc::CallbackServerContext* context, Handler handler) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const auto call = std::make_shared<Call>(services, method, context);
  const bool taken = services.executor->TryRun([reactor, call, handler = std::move(handler)] {
    absl::Status status = call->Admit();
    if (status.ok()) status = CatchEngine([&] { return absl::Status(handler(*call)); });
    reactor->Finish(call->Finish(status));
  });
  if (!taken) reactor->Finish(call->Finish(ExecutorFull()));
  return reactor;
}

}  // namespace docmem::server
