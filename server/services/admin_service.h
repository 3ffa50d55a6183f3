#pragma once

#include <functional>

#include "absl/time/time.h"
#include "adapter_store/adapter_store.h"
#include "docmem/v1/admin.grpc.pb.h"
#include "server/interceptors/call.h"
#include "server/interceptors/late.h"
#include "server/runtime/residency.h"
#include "server/services/facts.h"

namespace docmem::server {

/// docmem.v1.AdminService. Reactors never block.
class AdminService final : public v1::AdminService::CallbackService {
 public:
  struct Parts {
    const Lifecycle* lifecycle = nullptr;
    const Late<store::AdapterStore>* store = nullptr;
    const Late<Residency>* residency = nullptr;
    const Late<const ModelFacts>* model = nullptr;
    LimitFacts limits;
    std::function<QueueFacts()> queue;  ///< any thread, at any time
    std::function<void(bool)> drain;    ///< true: drain, false: take up work again; any thread
  };

  /// The parts must outlive the service.
  AdminService(ServiceContext services, Parts parts);
  ~AdminService() override;

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::GetStatusRequest* request,
                                      v1::GetStatusResponse* response) override;
  grpc::ServerUnaryReactor* ListResident(grpc::CallbackServerContext* context,
                                         const v1::ListResidentRequest* request,
                                         v1::ListResidentResponse* response) override;
  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* context,
                                  const v1::DrainRequest* request,
                                  v1::DrainResponse* response) override;

 private:
  const ServiceContext services_;
  const Parts parts_;
  const absl::Time started_;
};

}  // namespace docmem::server
