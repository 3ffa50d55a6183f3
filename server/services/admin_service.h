#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "adapter_store/adapter_store.h"
#include "docmem/v1/admin.grpc.pb.h"
#include "server/interceptors/call.h"
#include "server/interceptors/late.h"
#include "server/runtime/residency.h"

namespace docmem::server {

/// What is known of the loaded model.
struct ModelFacts {
  std::string name, family, dtype, device;
  uint64_t parameters = 0;
  uint32_t layers = 0;
  uint32_t positions = 0;
  uint32_t vocabulary = 0;
  uint64_t weight_bytes = 0;
  std::string weights_digest, config_digest, tokenizer_digest;
  std::string prompt_format, prompt_format_digest;
};

struct LimitFacts {
  uint32_t max_adapter_rank = 0;
  uint32_t max_queue = 0;
  uint32_t max_sequences = 0;
  uint32_t max_batch_tokens = 0;
  uint32_t question_reserve_tokens = 0;
};

/// Requests by what they wait for.
struct QueueFacts {
  uint32_t waiting = 0;
  uint32_t loading = 0;
  uint32_t running = 0;
  uint32_t building = 0;
};

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
