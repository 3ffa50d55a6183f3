#pragma once

#include "adapter_store/adapter_store.h"
#include "docmem/v1/collection.grpc.pb.h"
#include "server/interceptors/call.h"
#include "server/interceptors/late.h"
#include "server/runtime/residency.h"

namespace docmem::server {

/// docmem.v1.CollectionService over the store. Reactors never block.
class CollectionService final : public v1::CollectionService::CallbackService {
 public:
  /// Both parts must outlive the service.
  CollectionService(ServiceContext services, const Late<store::AdapterStore>* store,
                    const Late<Residency>* residency);
  ~CollectionService() override;

  grpc::ServerUnaryReactor* Create(grpc::CallbackServerContext* context,
                                   const v1::CreateCollectionRequest* request,
                                   v1::Collection* response) override;
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context,
                                const v1::GetCollectionRequest* request,
                                v1::Collection* response) override;
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context,
                                 const v1::ListCollectionsRequest* request,
                                 v1::ListCollectionsResponse* response) override;
  grpc::ServerUnaryReactor* Update(grpc::CallbackServerContext* context,
                                   const v1::UpdateCollectionRequest* request,
                                   v1::Collection* response) override;
  grpc::ServerUnaryReactor* Delete(grpc::CallbackServerContext* context,
                                   const v1::DeleteCollectionRequest* request,
                                   v1::DeleteCollectionResponse* response) override;

 private:
  const ServiceContext services_;
  const Late<store::AdapterStore>* const store_;
  const Late<Residency>* const residency_;
};

}  // namespace docmem::server
