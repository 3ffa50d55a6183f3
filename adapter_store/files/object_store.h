#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapter_store/files/file_system.h"

namespace docmem::store {

/// The seam to a place that several replicas share. Keys are ours alone, [a-z0-9/.-]; an object is
/// never changed under its key. Thread-safe, blocks on disk or network. Failures:
/// PERMISSION_DENIED, FAILED_PRECONDITION (the place itself isn't there), RESOURCE_EXHAUSTED (no
/// space), UNAVAILABLE (all others, after the retries that help), each naming operation and key.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;
  /// Stores the whole file as an object; that survives a loss of power. After a failure nothing is
  /// visible under the key, or the whole object is.
  virtual absl::Status Put(const std::string& key, const ReadableFile& file) = 0;
  /// Fills `buffer` with the whole object. NOT_FOUND when there is none, DATA_LOSS when it has
  /// another length. Doesn't check the content.
  virtual absl::Status Get(const std::string& key, std::span<std::byte> buffer) = 0;
  /// Deletes the objects whose keys begin with `prefix`, and what unfinished `Put`s of such keys
  /// have left; there may be none. `prefix` has a folder, as all keys have: "folder/name".
  virtual absl::Status DeleteAll(const std::string& prefix) = 0;
};

/// The folder of a volume that all replicas mount; see `OpenPosixFileSystem`. `files` may be
/// shared with others.
std::unique_ptr<ObjectStore> FolderObjectStore(std::shared_ptr<FileSystem> files);

/// Opens the place that `where` names: the absolute path of a folder, or s3://BUCKET[/PREFIX] (see
/// s3_object_store.h). INVALID_ARGUMENT for anything else.
absl::StatusOr<std::unique_ptr<ObjectStore>> OpenObjectStore(const std::string& where);

}  // namespace docmem::store
