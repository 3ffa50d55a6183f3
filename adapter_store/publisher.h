#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "adapter_store/artifact_writer.h"
#include "adapter_store/files/artifact_files.h"
#include "adapter_store/files/file_system.h"
#include "adapter_store/registry/intent_table.h"
#include "adapter_store/registry/registry.h"

namespace docmem::store {

struct PublisherOptions {
  FileSystem* files = nullptr;  ///< outlives the publisher, as the next two do
  ArtifactFiles* artifacts = nullptr;
  Registry* registry = nullptr;
  std::string instance;     ///< this data folder
  uint64_t generation = 0;  ///< this start of it
  absl::Duration publish_timeout;
  absl::Duration orphan_age;
  std::function<absl::Time()> clock;
};

struct PlannedFile {
  const NewFile* file = nullptr;
  ArtifactKind kind = ArtifactKind::kText;
};

class Publisher;

/// Files that lie in place and have no row yet. Destruction deletes them unless they were
/// committed.
class WrittenBatch {
 public:
  /// Empty, to be joined by others.
  explicit WrittenBatch(Publisher* publisher) : publisher_(publisher) {}
  ~WrittenBatch();
  WrittenBatch(const WrittenBatch&) = delete;
  WrittenBatch& operator=(const WrittenBatch&) = delete;
  /// Takes over the files of another batch of the same publisher: all are committed, or none.
  void Join(std::unique_ptr<WrittenBatch> other);
  /// In the order planned.
  const std::vector<StoredFile>& files() const { return files_; }

 private:
  friend class Publisher;
  Publisher* publisher_;  // null: nothing to delete
  std::vector<Intent> intents_;
  std::vector<StoredFile> files_;
};

/// Keeps files and registry in step. Publication: intent row, temporary files, sync, rename, sync
/// of the folders, then one transaction that makes the rows and ends the intent. Deletion: one
/// transaction that removes the rows and leaves an intent, then the files, then the intent.
/// Thread-safe, blocks on disk.
class Publisher {
 public:
  /// Changes rows; the files it puts in `deleted` are deleted after the transaction.
  using Body = absl::FunctionRef<absl::Status(Sql&, std::vector<IntentFile>& deleted)>;

  explicit Publisher(PublisherOptions options) : options_(std::move(options)) {}

  /// Reserves the bytes of all files, then writes and names them.
  absl::StatusOr<std::unique_ptr<WrittenBatch>> Write(const std::vector<PlannedFile>& planned);
  /// Runs `body` in a transaction, which also ends the intents of `batch` (null: none).
  absl::Status Commit(WrittenBatch* batch, Body body);
  /// As `Commit` without a batch; works on a full disk too.
  absl::Status Delete(Body body);
  /// Makes the file whose space `Delete` uses on a full disk.
  absl::Status KeepSpare() const;
  /// Deletes dead files, see `AdapterStore::CollectGarbage`.
  absl::Status CollectGarbage();

  uint64_t orphans_collected() const { return orphans_collected_; }
  uint64_t orphan_bytes_collected() const { return orphan_bytes_collected_; }

 private:
  friend class WrittenBatch;
  enum class Fate { kKeep, kDelete, kDeleteWhenOld };
  Fate FateOf(const Intent& intent) const;
  absl::Status WriteAll(WrittenBatch& batch, std::vector<DiskReservation> reservations,
                        const std::vector<PlannedFile>& planned) const;
  void Abandon(const Intent& intent) const;
  absl::Status FinishDeletion(const Intent& intent) const;
  Intent NewIntent(IntentAction action) const;

  const PublisherOptions options_;
  std::atomic<uint64_t> orphans_collected_ = 0;
  std::atomic<uint64_t> orphan_bytes_collected_ = 0;
};

}  // namespace docmem::store
