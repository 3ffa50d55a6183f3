#include "client/internal/rpc_status.h"

#include "absl/strings/cord.h"

namespace docmem::client::internal {

absl::Status FromGrpc(const grpc::Status& status) {
  absl::Status out(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  if (!status.ok() && !status.error_details().empty()) {
    out.SetPayload(kDetailsUrl, absl::Cord(status.error_details()));
  }
  return out;
}

}  // namespace docmem::client::internal
