#pragma once

#include <set>
#include <string>

#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "server/interceptors/call.h"

namespace docmem::server {

/// gRPC's reflection, behind the guard like every other service (gRPC's own plugin asks nobody).
/// Describes the wire contract, health and itself. Reactors never block.
class ReflectionService final
    : public grpc::reflection::v1alpha::ServerReflection::CallbackService {
 public:
  using Request = grpc::reflection::v1alpha::ServerReflectionRequest;
  using Response = grpc::reflection::v1alpha::ServerReflectionResponse;

  explicit ReflectionService(ServiceContext services);
  ~ReflectionService() override;

  grpc::ServerBidiReactor<Request, Response>* ServerReflectionInfo(
      grpc::CallbackServerContext* context) override;

  /// The response to one request; what isn't known is an error inside it.
  static Response Answer(const Request& request);

 private:
  const ServiceContext services_;
};

}  // namespace docmem::server
