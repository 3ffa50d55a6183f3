#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "docmem/v1/common.pb.h"
#include "engine/formats/digest.h"

namespace docmem::server {

/// The bytes of a client stream so far, against which its end message is checked.
class ReceivedBytes {
 public:
  void Add(const std::string& chunk);
  /// INVALID_ARGUMENT (CHECKSUM_MISMATCH) naming the field that differs.
  absl::Status CheckEnd(const v1::StreamEnd& end) const;

 private:
  uint64_t count_ = 0;
  engine::Sha256 digest_;
};

/// INVALID_ARGUMENT (STREAM_INCOMPLETE) on the field `part`.
absl::Status PartOutOfOrder(const std::string& message);

}  // namespace docmem::server
