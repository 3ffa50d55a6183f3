#include "server/services/query_service.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/errors/error.h"
#include "server/services/ask_stream.h"
#include "server/services/score_call.h"
#include "server/services/unary.h"
#include "server/services/validate.h"

namespace docmem::server {
namespace {

constexpr uint32_t kDefaultRanked = 5;
constexpr uint32_t kMaxRanked = 100;

v1::RouteResponse ToMessage(const store::RouteResult& result) {
  v1::RouteResponse message;
  for (const store::RankedDocument& document : result.documents) {
    v1::RankedDocument* const ranked = message.add_documents();
    ranked->set_document(document.key.id);
    ranked->set_title(document.title);
    ranked->set_score(document.score);
  }
  message.set_abstained(result.abstained);
  return message;
}

}  // namespace

// Here, so that the stubs' many templates are compiled in one file.
QueryService::QueryService(ServiceContext services, const Late<Asker>* asker,
                           const Late<store::AdapterStore>* store)
    : services_(services), asker_(asker), store_(store) {}
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
                                              v1::RouteResponse* response) {
  return RunUnary(services_, method::kRoute, context, [=, this](Call& call) {
    const absl::StatusOr<std::string> collection = CheckCollection(call, request->collection());
    if (!collection.ok()) return collection.status();
    absl::Status status = CheckText("question", request->question(), kMaxQuestionBytes);
    if (!status.ok()) return status;
    const uint32_t k = request->k() == 0 ? kDefaultRanked : request->k();
    if (k > kMaxRanked) {
      return InvalidField("k", absl::StrCat("is ", k, ", at most ", kMaxRanked, " are ranked"));
    }
    const absl::StatusOr<store::RouteResult> result =
        (*store_)->Route(*collection, request->question(), k);
    if (result.ok()) *response = ToMessage(*result);
    return result.status();
  });
}

}  // namespace docmem::server
