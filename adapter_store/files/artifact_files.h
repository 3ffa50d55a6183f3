#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapter_store/artifact_writer.h"
#include "adapter_store/files/disk_budget.h"
#include "adapter_store/types.h"

namespace docmem::store {

/// Names a file on disk. The id comes from the registry and is never used twice, so no name that
/// a user chose becomes part of a path.
struct FileRef {
  int64_t id = 0;
  ArtifactKind kind = ArtifactKind::kText;
  auto operator<=>(const FileRef&) const = default;
};

struct WrittenFile {
  uint64_t bytes = 0;
  std::string digest;  ///< XXH3-128
};

struct FoundFile {
  FileRef ref;
  uint64_t bytes = 0;
  absl::Time modified;
  bool temporary = false;
};

/// The artifact files, wherever they lie. Thread-safe, blocks on disk or network.
class ArtifactFiles {
 public:
  virtual ~ArtifactFiles() = default;

  /// Room on this data folder's disk for a file to be written. RESOURCE_EXHAUSTED as
  /// `DiskBudget::Reserve`.
  virtual absl::StatusOr<DiskReservation> Reserve(uint64_t bytes) = 0;
  /// Writes and syncs a temporary file out of `reservation`. After a failure it is gone, or will
  /// be found by `List`.
  virtual absl::StatusOr<WrittenFile> Write(const FileRef& ref, DiskReservation reservation,
                                            const ArtifactProducer& producer) = 0;
  /// Gives written files their names, durably. After a failure some may have them.
  virtual absl::Status Publish(std::span<const StoredFile> files) = 0;
  /// Fills `buffer` with the whole file, checking length and digest. DATA_LOSS when it is damaged,
  /// NOT_FOUND when it isn't there.
  virtual absl::Status Read(const FileRef& ref, const std::string& digest,
                            std::span<std::byte> buffer) = 0;
  /// Deletes the file, written or published; absence is no error. Returns the bytes freed in this
  /// data folder. Durable after `SyncRemovals`.
  virtual absl::StatusOr<uint64_t> Remove(const FileRef& ref) = 0;
  /// Deletes only what lies in this data folder, of a file that no row names.
  virtual absl::StatusOr<uint64_t> RemoveStray(const FileRef& ref) { return Remove(ref); }
  virtual absl::Status SyncRemovals(std::span<const FileRef> refs) = 0;
  /// All files of this data folder that have our names.
  virtual absl::StatusOr<std::vector<FoundFile>> List() = 0;
  /// Of this data folder; equals the bytes on its disk, also after failures.
  virtual const DiskBudget& budget() const = 0;
};

/// "<id, 16 hex digits>.<text|cache|adapter|checkpoint>".
std::string FileName(const FileRef& ref);
/// What a file name of ours says; nothing for any other name.
std::optional<FileRef> ParseFileName(const std::string& name);

}  // namespace docmem::store
