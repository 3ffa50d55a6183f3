#pragma once

#include "adapter_store/adapter_store.h"
#include "docmem/v1/query.grpc.pb.h"
#include "server/interceptors/call.h"
#include "server/interceptors/late.h"
#include "server/query/asker.h"

namespace docmem::server {

/// docmem.v1.QueryService over the scheduler; Route over the store. Reactors never block.
class QueryService final : public v1::QueryService::CallbackService {
 public:
  /// `asker` and `store` must outlive the service.
  QueryService(ServiceContext services, const Late<Asker>* asker,
               const Late<store::AdapterStore>* store);
  ~QueryService() override;

  grpc::ServerWriteReactor<v1::AskResponse>* Ask(grpc::CallbackServerContext* context,
                                                 const v1::AskRequest* request) override;
  grpc::ServerUnaryReactor* Score(grpc::CallbackServerContext* context,
                                  const v1::ScoreRequest* request,
                                  v1::ScoreResponse* response) override;
  grpc::ServerUnaryReactor* Abort(grpc::CallbackServerContext* context,
                                  const v1::AbortRequest* request,
                                  v1::AbortResponse* response) override;
  grpc::ServerUnaryReactor* Route(grpc::CallbackServerContext* context,
                                  const v1::RouteRequest* request,
                                  v1::RouteResponse* response) override;

 private:
  const ServiceContext services_;
  const Late<Asker>* const asker_;
  const Late<store::AdapterStore>* const store_;
};

}  // namespace docmem::server
