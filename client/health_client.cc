#include "client/health_client.h"

#include <utility>

#include "client/internal/unary.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace docmem::client {
namespace {

using Rpc = grpc::health::v1::Health::StubInterface;
using grpc::health::v1::HealthCheckResponse;

}  // namespace

struct HealthClient::Stub {
  std::unique_ptr<Rpc> rpc;
};

HealthClient::HealthClient(std::shared_ptr<const Connection> connection)
    : connection_(std::move(connection)),
      stub_(new Stub{grpc::health::v1::Health::NewStub(connection_->channel().channel())}) {}

HealthClient::~HealthClient() = default;

absl::StatusOr<bool> HealthClient::IsServing(const std::string& service,
                                             const CallOptions& options) {
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  const absl::StatusOr<HealthCheckResponse> reply =
      internal::Unary(connection_->channel(), stub_->rpc.get(), &Rpc::Check, request,
                      {internal::Repeat::kSafe}, options);
  if (absl::IsUnimplemented(reply.status())) {
    return absl::UnimplementedError(
        "no health service at this address: docmemd has it at --health-listen (port 7601 unless "
        "set), not at the API's");
  }
  if (!reply.ok()) return reply.status();
  return reply->status() == HealthCheckResponse::SERVING;
}

}  // namespace docmem::client
