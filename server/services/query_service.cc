#include "server/services/query_service.h"

#include "server/errors/error.h"
#include "server/services/ask_stream.h"
#include "server/services/score_call.h"
#include "server/services/unary.h"
#include "server/services/validate.h"

namespace docmem::server {

// Here, so that the stubs' many templates are compiled in one file.
QueryService::QueryService(ServiceContext services, const Late<Asker>* asker)
    : services_(services), asker_(asker) {}
QueryService::~QueryService() = default;

grpc::ServerWriteReactor<v1::AskResponse>* QueryService::Ask(grpc::CallbackServerContext* context,
                                                             const v1::AskRequest* request) {
  return AskStream::Start(services_, asker_, context, request);
}

grpc::ServerUnaryReactor* QueryService::Score(grpc::CallbackServerContext* context,
                                              const v1::ScoreRequest* request,
                                              v1::ScoreResponse* response) {
  return ScoreCall::Start(services_, asker_, context, request, response);
}

grpc::ServerUnaryReactor* QueryService::Abort(grpc::CallbackServerContext* context,
                                              const v1::AbortRequest* request,
                                              v1::AbortResponse* response) {
  return RunUnary(services_, method::kAbort, context, [=, this](Call& call) {
    if (absl::Status status = CheckId("request_id", request->request_id()); !status.ok()) {
      return status;
    }
    call.Named(request->request_id());
    const bool own = request->principal().empty() || request->principal() == call.principal().name;
    const Principal& caller = call.principal();
    if (!own && (caller.role != Role::kAdmin || !caller.collections.all())) {
      return Error(absl::StatusCode::kPermissionDenied, reason::kNotPermitted,
                   "only an admin of all collections may end another principal's requests",
                   {{"field", "principal"}});
    }
    const std::string& principal = own ? call.principal().name : request->principal();
    response->set_found((*asker_)->End(
        principal, request->request_id(),
        Error(absl::StatusCode::kCancelled, reason::kAbortedByClient, "aborted by the client")));
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* QueryService::Route(grpc::CallbackServerContext* context,
                                              const v1::RouteRequest* request,
                                              v1::RouteResponse* /*response*/) {
  return RunUnary(services_, method::kRoute, context, [=](Call& call) {
    const auto collection = CheckCollection(call, request->collection());
    return collection.ok() ? NotImplemented("Route") : collection.status();
  });
}

}  // namespace docmem::server
