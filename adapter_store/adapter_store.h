#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "adapter_store/publications.h"
#include "adapter_store/types.h"

namespace docmem::store {

class DocumentImport;
class FileSystem;
class ObjectStore;
class Registry;

struct AdapterStoreOptions {
  std::string folder;         ///< the data folder; created if only its last component is missing
  uint64_t budget_bytes = 0;  ///< of the artifact files in it, temporary ones too; 0: no limit
  /// How long a publication may take before others may collect its files as garbage.
  absl::Duration publish_timeout = absl::Hours(2);
  /// Age from which files under no intent or a foreign expired one are garbage.
  absl::Duration orphan_age = absl::Hours(1);
  std::function<absl::Time()> clock = absl::Now;
  /// Fills a buffer with random bytes. Default: the system's.
  std::function<void(std::span<std::byte>)> random;
  /// Connection string of libpq: the registry's place in PostgreSQL. Empty: SQLite inside `folder`.
  std::string postgres;
  /// The place of artifact files that replicas with the same registry share (see
  /// files/object_store.h): then `folder` keeps copies of those used last, within `budget_bytes`.
  /// Empty: they lie in `folder` alone.
  std::string artifacts;
  /// Seams for tests.
  std::shared_ptr<FileSystem> files;
  std::shared_ptr<Registry> registry;
  std::shared_ptr<ObjectStore> objects;
};

/// Only what is set is changed.
struct DocumentEdit {
  std::optional<std::string> title;
  std::optional<Labels> labels;
  std::optional<bool> pinned;
  std::optional<std::string> default_cache_id;
  std::optional<std::string> evaluation;
  bool drop_text = false;
};

struct CurrentAdapterChange {
  uint32_t previous_version = 0;
  uint32_t current_version = 0;
  uint64_t document_revision = 0;
};

struct KindUsage {
  uint64_t items = 0;  ///< documents with a text, caches, adapters, checkpoints
  uint64_t bytes = 0;
};

struct StoreStats {
  uint64_t budget_bytes = 0;
  uint64_t used_bytes = 0;  ///< files in place; what `du --apparent-size` says of their folder
  uint64_t reserved_bytes = 0;
  KindUsage text, cache, adapter, checkpoint;
  uint64_t collections = 0;
  uint64_t documents = 0;
  uint64_t quarantined_documents = 0;
  uint64_t quarantined_files = 0;
  uint64_t dropped_jobs = 0;       ///< with damaged rows, by `Open`
  uint64_t orphans_collected = 0;  ///< since `Open`
  uint64_t orphan_bytes_collected = 0;
};

/// What DocMem remembers on disk: the registry of collections, documents, caches, adapters and
/// training jobs, and their artifact files. A row is the moment of birth: files are written, synced
/// and named first, then one transaction makes them visible; deletion runs the other way round.
///
/// Thread-safe. Every call may block on disk, so never call it from an RPC reactor or the engine
/// thread. Calls that change something are atomic: after a failure nothing has changed, but for
/// files that the next start collects. Errors carry a reason (errors.h). An id that isn't
/// [A-Za-z0-9._-]{1,128} or starts with a dot is INVALID_ARGUMENT; what is absent is NOT_FOUND.
/// `revision` arguments: 0 accepts any, another than the current one is ABORTED.
class AdapterStore {
 public:
  /// Locks the folder (FAILED_PRECONDITION while another process has it), migrates the registry,
  /// gives documents whose building was interrupted the state kFailed and damaged rows
  /// kQuarantined, drops training jobs with damaged rows, and collects garbage. Payloads aren't
  /// read.
  static absl::StatusOr<std::unique_ptr<AdapterStore>> Open(AdapterStoreOptions options);
  virtual ~AdapterStore() = default;

  // ---- Collections. "default" always exists. ----
  virtual absl::StatusOr<Collection> CreateCollection(const std::string& name,
                                                      const CollectionSettings& settings) = 0;
  virtual absl::StatusOr<Collection> GetCollection(const std::string& name) = 0;
  /// Without counting what is in it: cheap enough for every request.
  virtual absl::StatusOr<CollectionSettings> GetCollectionSettings(const std::string& name) = 0;
  virtual absl::StatusOr<Page<Collection>> ListCollections(const PageRequest& page) = 0;
  /// `edit` changes the settings in place inside the transaction; its failure is returned. Where
  /// `lexical_index` is on afterwards, retained texts that aren't indexed yet are, one by one: on
  /// failure the setting stays and the next `Open` goes on. Where it is switched off, the index
  /// goes.
  virtual absl::StatusOr<Collection> UpdateCollection(
      const std::string& name, uint64_t revision,
      absl::FunctionRef<absl::Status(CollectionSettings&)> edit) = 0;
  /// With `force` its documents go too. Returns how many went.
  virtual absl::StatusOr<uint32_t> DeleteCollection(const std::string& name, bool force) = 0;

  // ---- Documents ----
  /// Announces a document before its caches are computed. Absent or failed: it is kBuilding now.
  /// Ready or building with the same text: returned as it is. With another text: ALREADY_EXISTS,
  /// unless it is ready and `replaces` is its revision (else ABORTED): returned as it is, and it
  /// answers from its old text until `PublishDocument`. Quarantined: DATA_LOSS; delete it first.
  virtual absl::StatusOr<Document> BeginDocument(const DocumentKey& key, const DocumentSpec& spec,
                                                 uint64_t replaces) = 0;
  /// Writes text and caches and makes the document ready. When it replaces a text, the old text
  /// and caches go and the adapters become stale. ABORTED when the document was deleted or
  /// changed meanwhile.
  virtual absl::StatusOr<Document> PublishDocument(const DocumentPublication& publication) = 0;
  /// kBuilding becomes kFailed; any other state stays. Absent: no error.
  virtual absl::Status FailDocument(const DocumentKey& key, int64_t row,
                                    const std::string& why) = 0;
  virtual absl::StatusOr<Document> GetDocument(const DocumentKey& key) = 0;
  virtual absl::StatusOr<Page<Document>> ListDocuments(const std::string& collection,
                                                       const DocumentQuery& query,
                                                       const PageRequest& page) = 0;
  virtual absl::StatusOr<Document> UpdateDocument(const DocumentKey& key, uint64_t revision,
                                                  const DocumentEdit& edit) = 0;
  virtual absl::Status DeleteDocument(const DocumentKey& key, uint64_t revision) = 0;
  /// Takes a document that was made elsewhere, see document_import.h. ALREADY_EXISTS, unless the
  /// one of that id is ready and `replaces` is its revision (else ABORTED), or it has failed.
  virtual absl::StatusOr<std::unique_ptr<DocumentImport>> BeginImport(const DocumentKey& key,
                                                                      uint64_t replaces) = 0;

  /// The at most `k` ready documents of the collection that fit the question best, by their words.
  /// FAILED_PRECONDITION where the collection has no lexical index. Documents that came without a
  /// text (an archive of one that isn't retained), or whose text wasn't retained when the index was
  /// switched on, aren't found.
  virtual absl::StatusOr<RouteResult> Route(const std::string& collection,
                                            const std::string& question, uint32_t k) = 0;

  // ---- Caches ----
  /// Adds caches to a ready document whose text is still `text_sha256` (else ABORTED) and that
  /// still has the adapters that made them (else NOT_FOUND). One that exists undamaged is kept and
  /// the new bytes are dropped.
  virtual absl::StatusOr<Document> PublishCaches(const DocumentKey& key,
                                                 const std::string& text_sha256,
                                                 const std::vector<NewCache>& caches) = 0;
  /// When it was the default, the oldest that is left becomes it.
  virtual absl::Status DeleteCache(const DocumentKey& key, const std::string& cache_id) = 0;

  // ---- Adapters ----
  /// The same hash again gives the existing version (mended if it was quarantined, made current if
  /// asked for and not stale). FAILED_PRECONDITION unless the document is ready.
  virtual absl::StatusOr<Adapter> PublishAdapter(const AdapterPublication& publication) = 0;
  /// Version 0: the current one.
  virtual absl::StatusOr<Adapter> GetAdapter(const DocumentKey& key, uint32_t version) = 0;
  /// Newest version first.
  virtual absl::StatusOr<Page<Adapter>> ListAdapters(const DocumentKey& key,
                                                     const PageRequest& page) = 0;
  /// Version 0: none. FAILED_PRECONDITION for a stale version.
  virtual absl::StatusOr<CurrentAdapterChange> SetCurrentAdapter(const DocumentKey& key,
                                                                 uint32_t version,
                                                                 uint64_t revision) = 0;
  /// With the caches that it wrote or scored; returns how many. FAILED_PRECONDITION for the
  /// current version.
  virtual absl::StatusOr<uint32_t> DeleteAdapter(const DocumentKey& key, uint32_t version) = 0;

  // ---- Training. Jobs and their checkpoints go with their document, whose text may change. ----
  /// A queued one. FAILED_PRECONDITION unless the document is ready.
  virtual absl::StatusOr<TrainingJob> AddTrainingJob(const DocumentKey& key,
                                                     const std::string& request,
                                                     const std::string& report) = 0;
  virtual absl::StatusOr<TrainingJob> GetTrainingJob(int64_t id) = 0;
  /// Newest first. `document` empty: of the whole collection.
  virtual absl::StatusOr<Page<TrainingJob>> ListTrainingJobs(const std::string& collection,
                                                             const std::string& document,
                                                             const PageRequest& page) = 0;
  /// Queued and running ones of all collections.
  virtual absl::StatusOr<uint64_t> CountOpenTrainingJobs() = 0;
  /// The oldest of these that no other replica works on; it is this one's for `time`. A replica
  /// that starts again may claim its own at once. Clocks of replicas differ by less than that.
  virtual absl::StatusOr<std::optional<TrainingJob>> ClaimTrainingJob(absl::Duration time) = 0;
  /// Another `time` for a claimed one, with what it has come to. As `UpdateTrainingJob` else.
  virtual absl::Status KeepTrainingJob(int64_t id, absl::Duration time,
                                       const std::string& report) = 0;
  /// FAILED_PRECONDITION once it has ended; ABORTED where another replica has claimed it, but for
  /// an edit that cancels. One that ends it, which works on a full disk too, deletes its
  /// checkpoint and, of the document's ended jobs, the oldest beyond 32.
  virtual absl::StatusOr<TrainingJob> UpdateTrainingJob(int64_t id,
                                                        const TrainingJobEdit& edit) = 0;
  /// Replaces the job's checkpoint and report in one. Fails as `UpdateTrainingJob`.
  virtual absl::Status PublishTrainingCheckpoint(int64_t id, const NewFile& checkpoint,
                                                 const std::string& report) = 0;

  // ---- Bytes ----
  /// One read of the whole file into `buffer` (`file.bytes` long), checked while reading.
  /// NOT_FOUND when it was deleted meanwhile. A damaged or missing file is quarantined and
  /// DATA_LOSS, also at every later call; `buffer` is unspecified then.
  virtual absl::Status ReadFile(const StoredFile& file, std::span<std::byte> buffer) = 0;
  /// FAILED_PRECONDITION where the text isn't retained.
  virtual absl::StatusOr<std::string> ReadText(const DocumentKey& key) = 0;
  /// For damage that only the reader of a format can see.
  virtual absl::Status Quarantine(const StoredFile& file, const std::string& why) = 0;

  // ---- The folder ----
  virtual absl::StatusOr<std::optional<std::string>> GetSetting(const std::string& key) = 0;
  virtual absl::Status PutSetting(const std::string& key, const std::string& value) = 0;
  /// Grows by one at each `Open`.
  virtual uint64_t generation() const = 0;
  /// Deletes files that no row and no live intent names, and failed deletions; documents that
  /// another replica has been building for longer than a publication may take are kFailed. For
  /// the janitor.
  virtual absl::Status CollectGarbage() = 0;
  virtual absl::StatusOr<StoreStats> Stats() = 0;
};

}  // namespace docmem::store
