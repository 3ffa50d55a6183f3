#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "adapter_store/archive_manifest.h"
#include "adapter_store/files/digest.h"

namespace docmem::store {

/// Takes what an archive holds, in its order. A failure ends the reading with it.
class ArchiveSink {
 public:
  virtual ~ArchiveSink() = default;
  /// Before any part; `manifest` lives as long as the reader. The place for limits: after it parts
  /// of the announced lengths are gathered in memory, one at a time.
  virtual absl::Status OnManifest(const ArchiveManifest& manifest) = 0;
  /// A whole part, its digest checked.
  virtual absl::Status OnPart(const ArchivePart& part, std::string bytes) = 0;
};

/// Reads an archive that comes in pieces of any size. What the sink is given isn't proven until
/// `Finish`: only then the digest over all is checked. INVALID_ARGUMENT (IMPORT_INVALID): no
/// archive, another version (both are named), a digest differs, too short or too long. Not
/// thread-safe; after a failure only destruction is allowed.
class ArchiveReader {
 public:
  explicit ArchiveReader(ArchiveSink* sink);

  absl::Status Take(std::string_view bytes);
  /// After the last piece.
  absl::Status Finish() const;

  uint64_t total_bytes() const { return total_bytes_; }

 private:
  enum class State { kVersion, kHeader, kManifest, kParts, kDigest, kEnd };

  absl::Status Advance();
  absl::Status TakeVersion() const;
  absl::Status TakeManifest();
  absl::Status TakePart();
  void Expect(State state, uint64_t bytes);
  void ExpectPart();

  ArchiveSink* const sink_;
  State state_ = State::kVersion;
  uint64_t wanted_ = 0;  // length of what is gathered
  std::string gathered_;
  std::string manifest_digest_;
  ArchiveManifest manifest_;
  std::vector<ArchivePart> parts_;
  size_t next_part_ = 0;
  Sha256Hasher digest_;
  uint64_t total_bytes_ = 0;
};

}  // namespace docmem::store
