#include "server/services/received_bytes.h"

#include "absl/strings/str_cat.h"
#include "server/errors/error.h"

namespace docmem::server {

void ReceivedBytes::Add(const std::string& chunk) {
  digest_.Update(chunk);
  count_ += chunk.size();
}

absl::Status ReceivedBytes::CheckEnd(const v1::StreamEnd& end) const {
  if (end.total_bytes() != count_) {
    return InvalidField("end.total_bytes",
                        absl::StrCat("is ", end.total_bytes(), ", but ", count_, " bytes came"),
                        reason::kChecksumMismatch);
  }
  if (end.sha256() != digest_.Hex()) {
    return InvalidField("end.sha256", "differs from the SHA-256 of the bytes that came",
                        reason::kChecksumMismatch);
  }
  return absl::OkStatus();
}

absl::Status PartOutOfOrder(const std::string& message) {
  return InvalidField("part", message, reason::kStreamIncomplete);
}

}  // namespace docmem::server
