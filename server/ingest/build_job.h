#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "adapter_store/adapter_store.h"
#include "adapter_store/sync.h"
#include "engine/engine.h"
#include "server/ingest/build.h"
#include "server/ingest/builder.h"
#include "server/runtime/engine_loop.h"

namespace docmem::server {

/// One build from its request to the published caches:
///   Prepare (executor): encode, announce the document, find what is missing, lease the adapter
///                       that shall write it
///   Step    (engine thread): prefill and evict
///   Publish (executor): write the files, make the document ready
/// The functions run in this order, one at a time; sinks may come and go at any moment.
class BuildJob : public TensorWork, public std::enable_shared_from_this<BuildJob> {
 public:
  BuildJob(Builder* builder, IngestRequest request);
  BuildJob(Builder* builder, CacheBuildRequest request);

  const std::string& name() const { return name_; }  ///< the document's
  /// Whether a request equal to `other`'s would be served by this job.
  bool Equals(const BuildJob& other) const;

  /// 0 when the job has ended already.
  uint64_t Join(bool detach, std::shared_ptr<BuildSink> sink);
  void Leave(uint64_t sink);
  /// Ends the job unless it publishes already.
  void Cancel(const absl::Status& status);
  void Start();

  bool Step() override;  // TensorWork
  void OnClosed(const absl::Status& status) override;

 private:
  void Prepare();
  absl::Status ReadStored();
  absl::Status Encode(const std::optional<store::Document>& existing);
  absl::Status Announce();
  absl::Status CheckOptions(const store::Document& document) const;
  void ChooseMissing();
  void LeaseAdapter();
  void Prefill();
  void Publish();
  absl::StatusOr<store::Document> PublishFiles();
  void SettleMemories(const store::Document& document);
  absl::Status cancelled() const;
  /// Queues what shall follow, then closes.
  void Succeed();
  void Fail(absl::Status status);
  void Close(const absl::StatusOr<BuildResult>& result);
  void Report(BuildProgress::Phase phase, double fraction);
  void Heartbeat();
  void SendProgress();

  // Constant after construction.
  Builder* const builder_;
  const std::string name_;
  const bool ingests_;
  const CacheMaker maker_;
  const absl::Time created_;

  // One stage at a time.
  IngestRequest request_;  ///< of a cache build: what both kinds share, text from the store
  std::string system_text_;
  engine::Context context_;
  store::Document document_;
  bool announced_ = false;  ///< this job has made the document's row
  bool replaces_ = false;
  std::optional<store::Adapter> adapter_;  ///< the maker's; none: the base model
  std::vector<engine::Compression> missing_;
  std::vector<std::string> missing_ids_;
  std::shared_ptr<const engine::Adapter> loaded_adapter_;  ///< leased until prefilled
  std::unique_ptr<engine::Ingestion> ingestion_;
  std::vector<std::shared_ptr<const engine::Cache>> caches_;
  BuildResult result_;
  absl::Time stage_began_;

  std::atomic<bool> stop_{false};  ///< polled by the tokenizer

  mutable store::Mutex mutex_;
  std::map<uint64_t, std::shared_ptr<BuildSink>> sinks_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_sink_ ABSL_GUARDED_BY(mutex_) = 1;
  bool detached_ ABSL_GUARDED_BY(mutex_) = false;
  bool publishing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status cancel_status_ ABSL_GUARDED_BY(mutex_);
  Memories::AcquireId acquire_ ABSL_GUARDED_BY(mutex_) = 0;
  EngineLoop::Ticket work_ ABSL_GUARDED_BY(mutex_) = 0;
  Timer::Id heartbeat_ ABSL_GUARDED_BY(mutex_) = 0;
  BuildProgress progress_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace docmem::server
