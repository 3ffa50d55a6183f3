#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "adapter_store/files/artifact_files.h"
#include "adapter_store/files/file_system.h"

namespace docmem::store {

/// The files of one data folder:
///   artifacts/<id modulo 64, 2 hex digits>/<id, 16 hex digits>.<text|cache|adapter|checkpoint>
///   temporary/<the same name>   while they are written
class LocalArtifactFiles : public ArtifactFiles {
 public:
  /// Makes the folders and counts what is in them. `files` must outlive the result.
  static absl::StatusOr<std::unique_ptr<LocalArtifactFiles>> Open(FileSystem* files,
                                                                  uint64_t budget_bytes);

  absl::StatusOr<DiskReservation> Reserve(uint64_t bytes) override {
    return budget_.Reserve(bytes);
  }
  absl::StatusOr<WrittenFile> Write(const FileRef& ref, DiskReservation reservation,
                                    const ArtifactProducer& producer) override;
  absl::Status Publish(std::span<const StoredFile> files) override;
  absl::Status Read(const FileRef& ref, const std::string& digest,
                    std::span<std::byte> buffer) override;
  absl::StatusOr<uint64_t> Remove(const FileRef& ref) override;
  absl::Status SyncRemovals(std::span<const FileRef> refs) override;
  absl::StatusOr<std::vector<FoundFile>> List() override;
  const DiskBudget& budget() const override { return budget_; }

  /// A file that was written and has no name yet.
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenWritten(const FileRef& ref);
  /// Keeps a copy of what lies elsewhere, not durably. After a failure nothing of it is left.
  absl::Status Keep(const FileRef& ref, DiskReservation reservation,
                    std::span<const std::byte> bytes);
  /// Deletes such a copy, and what an interrupted `Keep` left; absence is no error.
  absl::Status Drop(const FileRef& ref);

 private:
  LocalArtifactFiles(FileSystem* files, uint64_t budget_bytes)
      : files_(files), budget_(budget_bytes) {}
  absl::StatusOr<WrittenFile> WriteTemporary(const FileRef& ref, DiskReservation reservation,
                                             const ArtifactProducer& producer, bool durable);
  absl::Status SyncFolders(const std::set<std::string>& folders);
  absl::StatusOr<uint64_t> RemoveAt(const std::string& path);

  FileSystem* const files_;
  DiskBudget budget_;
};

}  // namespace docmem::store
