#include "client/admin_client.h"

#include <utility>

#include "client/internal/unary.h"
#include "docmem/v1/admin.grpc.pb.h"

namespace docmem::client {
namespace {

using Rpc = v1::AdminService::StubInterface;
using internal::Repeat;
using internal::Unary;

}  // namespace

struct AdminClient::Stub {
  std::unique_ptr<Rpc> rpc;
};

AdminClient::AdminClient(std::shared_ptr<const Connection> connection)
    : connection_(std::move(connection)),
      stub_(new Stub{v1::AdminService::NewStub(connection_->channel().channel())}) {}

AdminClient::~AdminClient() = default;

absl::StatusOr<v1::GetStatusResponse> AdminClient::GetStatus(const CallOptions& options) {
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::GetStatus, v1::GetStatusRequest(),
               {Repeat::kSafe}, options);
}

absl::StatusOr<v1::ListResidentResponse> AdminClient::ListResident(
    const v1::ListResidentRequest& request, const CallOptions& options) {
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::ListResident, request,
               {Repeat::kSafe}, options);
}

absl::StatusOr<v1::DrainResponse> AdminClient::Drain(const v1::DrainRequest& request,
                                                     const CallOptions& options) {
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::Drain, request, {Repeat::kSafe},
               options);
}

}  // namespace docmem::client
