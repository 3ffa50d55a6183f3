#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "client/connection.h"
#include "client/options.h"
#include "docmem/v1/collection.pb.h"

namespace docmem::client {

/// Collections: named sets of documents. Thread-safe. Requests, replies and errors are those of
/// docmem/v1/collection.proto.
class CollectionClient {
 public:
  explicit CollectionClient(std::shared_ptr<const Connection> connection);
  ~CollectionClient();

  absl::StatusOr<v1::Collection> Create(const v1::CreateCollectionRequest& request,
                                        const CallOptions& options = {});
  absl::StatusOr<v1::Collection> Get(const v1::GetCollectionRequest& request,
                                     const CallOptions& options = {});
  absl::StatusOr<v1::ListCollectionsResponse> List(const v1::ListCollectionsRequest& request,
                                                   const CallOptions& options = {});
  absl::StatusOr<v1::Collection> Update(const v1::UpdateCollectionRequest& request,
                                        const CallOptions& options = {});
  absl::StatusOr<v1::DeleteCollectionResponse> Delete(const v1::DeleteCollectionRequest& request,
                                                      const CallOptions& options = {});

 private:
  struct Stub;
  const std::shared_ptr<const Connection> connection_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace docmem::client
