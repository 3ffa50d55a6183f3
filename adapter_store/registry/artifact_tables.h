#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "adapter_store/registry/registry.h"
#include "adapter_store/types.h"

namespace docmem::store {

struct CacheRow {
  int64_t id = 0;
  int64_t document_id = 0;
  CacheSpec spec;
  absl::Time created;
  bool damaged = false;  ///< read only, here and below: its checksum is wrong
};

struct AdapterRow {
  int64_t id = 0;
  int64_t document_id = 0;
  uint32_t version = 0;
  AdapterSpec spec;
  AdapterState state = AdapterState::kReady;
  absl::Time created;
  bool damaged = false;
};

enum class FileRole {
  kText = 1,
  kCache = 2,
  kAdapterFile = 3,
  kAdapterPacked = 4,
  kCheckpoint = 5
};

ArtifactKind KindOf(FileRole role);

struct FileRow {
  StoredFile file;
  FileRole role = FileRole::kText;
  int64_t document_id = 0;
  int64_t cache_id = 0;  ///< 0: none, here and below
  int64_t adapter_id = 0;
  int64_t job_id = 0;    ///< the training job whose checkpoint it is
  bool damaged = false;  ///< then the file counts as quarantined
};

/// Insertions return the new id. Deleting a row deletes the rows of its files.
absl::StatusOr<int64_t> InsertCache(Sql& sql, const CacheRow& row);
/// Oldest first.
absl::StatusOr<std::vector<CacheRow>> CachesOf(Sql& sql, int64_t document_id);
absl::Status DeleteCacheRow(Sql& sql, int64_t id);

absl::StatusOr<int64_t> InsertAdapter(Sql& sql, const AdapterRow& row);
absl::StatusOr<std::optional<AdapterRow>> FindAdapter(Sql& sql, int64_t document_id,
                                                      uint32_t version);
absl::StatusOr<std::optional<AdapterRow>> FindAdapterByHash(Sql& sql, int64_t document_id,
                                                            const std::string& hash);
/// Newest first, versions below `before`.
absl::StatusOr<std::vector<AdapterRow>> AdaptersOf(Sql& sql, int64_t document_id, uint32_t before,
                                                   uint32_t limit);
absl::Status UpdateAdapterRow(Sql& sql, const AdapterRow& row);
absl::Status DeleteAdapterRow(Sql& sql, int64_t id);

/// The id is the caller's, from `BeginPublication`.
absl::Status InsertFile(Sql& sql, const FileRow& row);
absl::StatusOr<std::optional<FileRow>> FindFile(Sql& sql, int64_t id);
/// Of the document, its caches, adapters and training jobs; by id.
absl::StatusOr<std::vector<FileRow>> FilesOf(Sql& sql, int64_t document_id);
/// The job's checkpoint, if any.
absl::StatusOr<std::vector<FileRow>> FilesOfJob(Sql& sql, int64_t job_id);
absl::Status UpdateFileRow(Sql& sql, const FileRow& row);
absl::Status DeleteFileRow(Sql& sql, int64_t id);
/// Ascending.
absl::StatusOr<std::vector<int64_t>> AllFileIds(Sql& sql);

}  // namespace docmem::store
