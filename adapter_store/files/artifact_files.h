#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapter_store/artifact_writer.h"
#include "adapter_store/files/disk_budget.h"
#include "adapter_store/files/file_system.h"
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

/// The artifact files of one data folder:
///   artifacts/<id modulo 64, 2 hex digits>/<id, 16 hex digits>.<text|cache|adapter|checkpoint>
///   temporary/<the same name>   while they are written
/// Its budget always equals the bytes on disk, also after failures. Thread-safe, blocks on disk.
class ArtifactFiles {
 public:
  /// Makes the folders and counts what is in them. `files` must outlive the result.
  static absl::StatusOr<std::unique_ptr<ArtifactFiles>> Open(FileSystem* files,
                                                             uint64_t budget_bytes);

  DiskBudget& budget() { return budget_; }

  /// Writes and syncs a temporary file out of `reservation`. After a failure it is gone, or will
  /// be found by `List`.
  absl::StatusOr<WrittenFile> Write(const FileRef& ref, DiskReservation reservation,
                                    const ArtifactProducer& producer);
  /// Gives temporary files their names, durably. After a failure some may have them.
  absl::Status Publish(std::span<const FileRef> refs);
  /// Fills `buffer` with the whole file, checking length and digest while reading. DATA_LOSS when
  /// it is damaged, NOT_FOUND when it isn't there.
  absl::Status Read(const FileRef& ref, const std::string& digest, std::span<std::byte> buffer);
  /// Deletes the file under both of its names; absence is no error. Returns the bytes freed.
  /// Durable after `SyncRemovals`.
  absl::StatusOr<uint64_t> Remove(const FileRef& ref);
  /// Under both names.
  absl::Status SyncRemovals(std::span<const FileRef> refs);
  /// All files that have our names.
  absl::StatusOr<std::vector<FoundFile>> List();

 private:
  ArtifactFiles(FileSystem* files, uint64_t budget_bytes) : files_(files), budget_(budget_bytes) {}
  absl::Status SyncFolders(std::span<const FileRef> refs, std::set<std::string> folders);
  absl::StatusOr<uint64_t> RemoveAt(const std::string& path);

  FileSystem* const files_;
  DiskBudget budget_;
};

/// What a file name of ours says; nothing for any other name.
std::optional<FileRef> ParseFileName(const std::string& name);

}  // namespace docmem::store
