#pragma once

#include "adapter_store/adapter_store.h"
#include "docmem/v1/adapter.grpc.pb.h"
#include "server/ingest/adapter_intake.h"
#include "server/interceptors/call.h"
#include "server/interceptors/late.h"
#include "server/runtime/residency.h"

namespace docmem::server {

/// docmem.v1.AdapterService over store and intake. Reactors never block.
class AdapterService final : public v1::AdapterService::CallbackService {
 public:
  struct Parts {
    const Late<store::AdapterStore>* store = nullptr;
    const Late<Residency>* residency = nullptr;
    const Late<AdapterIntake>* intake = nullptr;
  };

  /// The parts must outlive the service.
  AdapterService(ServiceContext services, Parts parts);
  ~AdapterService() override;

  grpc::ServerReadReactor<v1::UploadAdapterRequest>* Upload(grpc::CallbackServerContext* context,
                                                            v1::Adapter* response) override;
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context,
                                const v1::GetAdapterRequest* request,
                                v1::Adapter* response) override;
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context,
                                 const v1::ListAdaptersRequest* request,
                                 v1::ListAdaptersResponse* response) override;
  grpc::ServerWriteReactor<v1::DownloadAdapterResponse>* Download(
      grpc::CallbackServerContext* context, const v1::DownloadAdapterRequest* request) override;
  grpc::ServerUnaryReactor* SetCurrent(grpc::CallbackServerContext* context,
                                       const v1::SetCurrentAdapterRequest* request,
                                       v1::SetCurrentAdapterResponse* response) override;
  grpc::ServerUnaryReactor* Delete(grpc::CallbackServerContext* context,
                                   const v1::DeleteAdapterRequest* request,
                                   v1::DeleteAdapterResponse* response) override;

 private:
  /// A pinned document's pins follow its current adapter.
  void RefreshPins(const store::DocumentKey& key) const;

  const ServiceContext services_;
  const Parts parts_;
};

}  // namespace docmem::server
