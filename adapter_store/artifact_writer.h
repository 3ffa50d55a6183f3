#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace docmem::store {

/// Where a file's bytes go while it is published: straight to the disk, hashed on the way, so a
/// large cache needs no second copy. Lives during the producer's call; one thread.
class ArtifactWriter {
 public:
  virtual ~ArtifactWriter() = default;
  /// `bytes` may be reused after the call. A failure (also writing more than was declared) fails
  /// the publication; further calls return it again.
  virtual absl::Status Append(std::span<const std::byte> bytes) = 0;
};

/// Writes one file front to back. What it returns is the outcome of the publication.
using ArtifactProducer = std::function<absl::Status(ArtifactWriter&)>;

/// A file to be published.
struct NewFile {
  std::string name;        ///< inside its artifact, at most 128 bytes
  uint64_t max_bytes = 0;  ///< reserved from the disk budget before the first byte is written
  ArtifactProducer producer;
};

/// A file whose bytes are in memory; `bytes` must live until the publication returns.
NewFile FileFromMemory(std::string name, std::span<const std::byte> bytes);

}  // namespace docmem::store
