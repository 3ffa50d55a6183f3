#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace docmem::store {

struct FileEntry {
  std::string name;  ///< without its folder
  uint64_t bytes = 0;
  absl::Time modified;
  bool is_folder = false;
  bool is_regular = false;  ///< false for symlinks, sockets and the like
};

/// A new file that grows at its end. One thread at a time. Destruction closes it without a sync.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  /// After a failure an unknown part of `bytes` is in the file; remove it.
  virtual absl::Status Append(std::span<const std::byte> bytes) = 0;
  /// When OK, the file's content survives a loss of power (its name doesn't: `SyncFolder`).
  virtual absl::Status Sync() = 0;
};

/// Thread-safe. A file that is removed while it is open stays readable.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual uint64_t bytes() const = 0;
  /// Fills `buffer` from `offset` on; DATA_LOSS when the file ends before.
  virtual absl::Status Read(uint64_t offset, std::span<std::byte> buffer) const = 0;
};

/// Held until destruction.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

/// The seam to one folder on disk. All paths are relative to it, made of our own names only, and
/// stay inside: "..", absolute paths and symlinks at any component are FAILED_PRECONDITION.
/// Thread-safe. Failures: NOT_FOUND, ALREADY_EXISTS, RESOURCE_EXHAUSTED (no space),
/// PERMISSION_DENIED, UNAVAILABLE (any other error of the disk), each naming operation and path.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  /// ALREADY_EXISTS when something has that name.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  /// Regular files only.
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) = 0;
  /// Atomic; replaces a file at `to`. Durable after `SyncFolder` of `to`'s folder.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  /// Of a file or a symlink itself, never its target.
  virtual absl::Status Remove(const std::string& path) = 0;
  /// An existing folder is no error. Durable after `SyncFolder` of its parent.
  virtual absl::Status CreateFolder(const std::string& path) = 0;
  /// "" is the root.
  virtual absl::Status SyncFolder(const std::string& path) = 0;
  virtual absl::StatusOr<std::vector<FileEntry>> List(const std::string& path) = 0;
  virtual absl::StatusOr<FileEntry> Stat(const std::string& path) = 0;
  /// Creates the file if needed. FAILED_PRECONDITION while another process holds the lock.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) = 0;
};

/// Opens the folder `root`, creating it (mode 0700) where only its last component is missing.
/// `root` itself may be reached through symlinks: it is the operator's own path.
absl::StatusOr<std::unique_ptr<FileSystem>> OpenPosixFileSystem(const std::string& root);

}  // namespace docmem::store
