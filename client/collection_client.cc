#include "client/collection_client.h"

#include <utility>

#include "client/internal/unary.h"
#include "docmem/v1/collection.grpc.pb.h"

namespace docmem::client {
namespace {

using Rpc = v1::CollectionService::StubInterface;
using internal::Repeat;
using internal::Unary;

}  // namespace

struct CollectionClient::Stub {
  std::unique_ptr<Rpc> rpc;
};

CollectionClient::CollectionClient(std::shared_ptr<const Connection> connection)
    : connection_(std::move(connection)),
      stub_(new Stub{v1::CollectionService::NewStub(connection_->channel().channel())}) {}

CollectionClient::~CollectionClient() = default;

absl::StatusOr<v1::Collection> CollectionClient::Create(const v1::CreateCollectionRequest& request,
                                                        const CallOptions& options) {
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::Create, request, {Repeat::kUnsafe},
               options);
}

absl::StatusOr<v1::Collection> CollectionClient::Get(const v1::GetCollectionRequest& request,
                                                     const CallOptions& options) {
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::Get, request, {Repeat::kSafe},
               options);
}

absl::StatusOr<v1::ListCollectionsResponse> CollectionClient::List(
    const v1::ListCollectionsRequest& request, const CallOptions& options) {
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::List, request, {Repeat::kSafe},
               options);
}

absl::StatusOr<v1::Collection> CollectionClient::Update(const v1::UpdateCollectionRequest& request,
                                                        const CallOptions& options) {
  const Repeat repeat = request.revision() == 0 ? Repeat::kSafe : Repeat::kUnsafe;
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::Update, request, {repeat}, options);
}

absl::StatusOr<v1::DeleteCollectionResponse> CollectionClient::Delete(
    const v1::DeleteCollectionRequest& request, const CallOptions& options) {
  const Repeat repeat = request.allow_missing() ? Repeat::kSafe : Repeat::kUnsafe;
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::Delete, request, {repeat}, options);
}

}  // namespace docmem::client
