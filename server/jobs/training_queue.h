#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "adapter_store/adapter_store.h"
#include "adapter_store/sync.h"
#include "engine/engine.h"
#include "server/ingest/adapter_intake.h"
#include "server/jobs/training.h"
#include "server/runtime/engine_loop.h"
#include "server/runtime/executor.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"

namespace docmem::server {

class TrainingRun;

struct TrainingQueueOptions {
  uint32_t max_open = 64;  ///< waiting and running
  uint32_t max_rank = 64;
  uint32_t question_reserve_tokens = 512;
  /// Between two checkpoints: what is trained again after a crash, at most.
  absl::Duration checkpoint_interval = absl::Seconds(30);
};

/// What trainings work with; all of it must outlive the queue.
struct TrainingParts {
  std::shared_ptr<const engine::Engine> engine;
  store::AdapterStore* store = nullptr;
  const AdapterIntake* intake = nullptr;
  EngineLoop* loop = nullptr;
  Executor* executor = nullptr;  ///< for registry, files and tokenising
  Metrics* metrics = nullptr;
  Log* log = nullptr;
};

/// How many pairs the base model writes where nobody says: one for 20 tokens of the document, about
/// the density of demo/qa.json, between 16 and 500.
uint32_t DefaultSyntheticPairs(int64_t document_tokens);

/// Trainings one after another, the oldest first, in units between decode steps. Each is a row of
/// the registry from its start on, so that a restart goes on with it. Thread-safe.
class TrainingQueue : public Trainings {
 public:
  TrainingQueue(TrainingParts parts, TrainingQueueOptions options);
  /// Everything must have ended: see `EndAll`.
  ~TrainingQueue() override;

  /// At the daemon's start, before any other call: goes on with what hasn't ended. Blocks on the
  /// registry.
  absl::Status Resume();

  absl::StatusOr<TrainingReport> Start(const store::DocumentKey& document,
                                       TrainingRequest request) override;
  absl::StatusOr<TrainingReport> Get(const std::string& id) override;
  absl::StatusOr<store::Page<TrainingReport>> List(const std::string& collection,
                                                   const std::string& document,
                                                   const store::PageRequest& page) override;
  absl::StatusOr<TrainingReport> Cancel(const std::string& id) override;
  absl::StatusOr<uint64_t> Watch(const std::string& id,
                                 std::shared_ptr<TrainingSink> sink) override;
  void Leave(const std::string& id, uint64_t sink) override;

  /// Refuses new trainings and stops those that run behind a checkpoint, for the next start; their
  /// watchers are closed with `status`.
  void EndAll(const absl::Status& status);

 private:
  friend class TrainingRun;
  using RunPtr = std::shared_ptr<TrainingRun>;

  absl::Status CheckDocument(const store::Document& document) const;
  /// Null for one that isn't open.
  RunPtr Find(int64_t row) const;
  void Add(RunPtr run);
  /// Called by a run at its very end: starts the next one.
  void Finished(int64_t row);

  const TrainingParts parts_;
  const TrainingQueueOptions options_;

  mutable store::Mutex mutex_;
  std::map<int64_t, RunPtr> open_ ABSL_GUARDED_BY(mutex_);
  int64_t running_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: none
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace docmem::server
