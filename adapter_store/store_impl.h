#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "adapter_store/adapter_store.h"
#include "adapter_store/files/artifact_files.h"
#include "adapter_store/files/file_system.h"
#include "adapter_store/lexical/word_counts.h"
#include "adapter_store/publisher.h"
#include "adapter_store/registry/artifact_tables.h"
#include "adapter_store/registry/collection_table.h"
#include "adapter_store/registry/document_table.h"
#include "adapter_store/registry/registry.h"
#include "adapter_store/registry/training_job_table.h"

namespace docmem::store {

/// The one implementation of `AdapterStore`; its contract is there. Sources: open_store.cc,
/// collections.cc, documents.cc, document_import.cc, route.cc, caches.cc, adapters.cc,
/// training_jobs.cc, stored_bytes.cc.
class StoreImpl : public AdapterStore {
 public:
  /// What `Open` has made ready.
  struct Parts {
    std::shared_ptr<FileSystem> files;
    std::unique_ptr<FileLock> lock;
    std::unique_ptr<ArtifactFiles> artifacts;
    std::shared_ptr<Registry> registry;
    std::unique_ptr<Publisher> publisher;
    std::function<absl::Time()> clock;
    std::string instance;
    uint64_t generation = 0;
    absl::Duration publish_timeout;
  };
  explicit StoreImpl(Parts parts) : parts_(std::move(parts)) {}

  absl::StatusOr<Collection> CreateCollection(const std::string& name,
                                              const CollectionSettings& settings) override;
  absl::StatusOr<Collection> GetCollection(const std::string& name) override;
  absl::StatusOr<CollectionSettings> GetCollectionSettings(const std::string& name) override;
  absl::StatusOr<Page<Collection>> ListCollections(const PageRequest& page) override;
  absl::StatusOr<Collection> UpdateCollection(
      const std::string& name, uint64_t revision,
      absl::FunctionRef<absl::Status(CollectionSettings&)> edit) override;
  absl::StatusOr<uint32_t> DeleteCollection(const std::string& name, bool force) override;

  absl::StatusOr<Document> BeginDocument(const DocumentKey& key, const DocumentSpec& spec,
                                         uint64_t replaces) override;
  absl::StatusOr<Document> PublishDocument(const DocumentPublication& publication) override;
  absl::Status FailDocument(const DocumentKey& key, int64_t row, const std::string& why) override;
  absl::StatusOr<Document> GetDocument(const DocumentKey& key) override;
  absl::StatusOr<Page<Document>> ListDocuments(const std::string& collection,
                                               const DocumentQuery& query,
                                               const PageRequest& page) override;
  absl::StatusOr<Document> UpdateDocument(const DocumentKey& key, uint64_t revision,
                                          const DocumentEdit& edit) override;
  absl::Status DeleteDocument(const DocumentKey& key, uint64_t revision) override;
  absl::StatusOr<std::unique_ptr<DocumentImport>> BeginImport(const DocumentKey& key,
                                                              uint64_t replaces) override;

  absl::StatusOr<RouteResult> Route(const std::string& collection, const std::string& question,
                                    uint32_t k) override;

  absl::StatusOr<Document> PublishCaches(const DocumentKey& key, const std::string& text_sha256,
                                         const std::vector<NewCache>& caches) override;
  absl::Status DeleteCache(const DocumentKey& key, const std::string& cache_id) override;

  absl::StatusOr<Adapter> PublishAdapter(const AdapterPublication& publication) override;
  absl::StatusOr<Adapter> GetAdapter(const DocumentKey& key, uint32_t version) override;
  absl::StatusOr<Page<Adapter>> ListAdapters(const DocumentKey& key,
                                             const PageRequest& page) override;
  absl::StatusOr<CurrentAdapterChange> SetCurrentAdapter(const DocumentKey& key, uint32_t version,
                                                         uint64_t revision) override;
  absl::StatusOr<uint32_t> DeleteAdapter(const DocumentKey& key, uint32_t version) override;

  absl::StatusOr<TrainingJob> AddTrainingJob(const DocumentKey& key, const std::string& request,
                                             const std::string& report) override;
  absl::StatusOr<TrainingJob> GetTrainingJob(int64_t id) override;
  absl::StatusOr<Page<TrainingJob>> ListTrainingJobs(const std::string& collection,
                                                     const std::string& document,
                                                     const PageRequest& page) override;
  absl::StatusOr<uint64_t> CountOpenTrainingJobs() override;
  absl::StatusOr<std::optional<TrainingJob>> ClaimTrainingJob(absl::Duration time) override;
  absl::Status KeepTrainingJob(int64_t id, absl::Duration time, const std::string& report) override;
  absl::StatusOr<TrainingJob> UpdateTrainingJob(int64_t id, const TrainingJobEdit& edit) override;
  absl::Status PublishTrainingCheckpoint(int64_t id, const NewFile& checkpoint,
                                         const std::string& report) override;

  absl::Status ReadFile(const StoredFile& file, std::span<std::byte> buffer) override;
  absl::StatusOr<std::string> ReadText(const DocumentKey& key) override;
  absl::Status Quarantine(const StoredFile& file, const std::string& why) override;

  absl::StatusOr<std::optional<std::string>> GetSetting(const std::string& key) override;
  absl::Status PutSetting(const std::string& key, const std::string& value) override;
  uint64_t generation() const override { return parts_.generation; }
  absl::Status CollectGarbage() override;
  absl::StatusOr<StoreStats> Stats() override;

  /// For `Open`: interrupted documents, damaged rows, the default collection.
  absl::Status Mend();
  /// For `Open`: garbage and the spare file. A full disk is no failure.
  absl::Status Prepare();
  /// Counts the words of retained texts where a lexical index lacks them.
  absl::Status CompleteIndex(const std::string& collection);
  /// For `Open`: of all collections.
  absl::Status CompleteIndexes();

 private:
  Registry& registry() { return *parts_.registry; }
  absl::Time Now() const { return parts_.clock(); }

  // What of a publication is made before its transaction.
  struct Prepared {
    std::vector<StoredFile> files;   // as they were planned
    std::optional<TextWords> words;  // of the text, if there is one
  };

  // Inside the transactions of PublishDocument and PublishAdapter; `files` as they were planned.
  absl::Status MakeReady(Sql& sql, DocumentRow row, const DocumentPublication& publication,
                         const Prepared& prepared, std::vector<IntentFile>& deleted);
  /// RequireOpenJob, where no other replica works on it.
  absl::StatusOr<TrainingJobRow> RequireOwnJob(Sql& sql, int64_t id);

  absl::StatusOr<uint32_t> AddAdapter(Sql& sql, DocumentRow& document,
                                      const AdapterPublication& publication,
                                      const std::vector<StoredFile>& files,
                                      std::vector<IntentFile>& deleted);

  const Parts parts_;
  uint64_t dropped_jobs_ = 0;  // constant once `Mend` is done
};

}  // namespace docmem::store
