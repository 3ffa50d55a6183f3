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
#include "server/runtime/timer.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"

namespace docmem::server {

class TrainingRun;

struct TrainingQueueOptions {
  uint32_t max_open = 64;  ///< waiting and running, of all replicas
  uint32_t max_rank = 64;
  uint32_t question_reserve_tokens = 512;
  /// Between two checkpoints: what is trained again after a crash, at most.
  absl::Duration checkpoint_interval = absl::Seconds(30);
  /// How often it looks for trainings that nobody works on, and for news of those that are watched
  /// here and run elsewhere.
  absl::Duration poll_interval = absl::Seconds(1);
  /// How long a training stays with a replica that isn't heard of; it is heard of three times as
  /// often.
  absl::Duration claim_time = absl::Seconds(30);
};

/// What trainings work with; all of it must outlive the queue.
struct TrainingParts {
  std::shared_ptr<const engine::Engine> engine;
  store::AdapterStore* store = nullptr;
  const AdapterIntake* intake = nullptr;
  EngineLoop* loop = nullptr;
  Executor* executor = nullptr;  ///< for registry, files and tokenising
  Timer* timer = nullptr;
  Metrics* metrics = nullptr;
  Log* log = nullptr;
};

/// How many pairs the base model writes where nobody says: one for 20 tokens of the document, about
/// the density of demo/qa.json, between 16 and 500.
uint32_t DefaultSyntheticPairs(int64_t document_tokens);

/// Trainings one after another, the oldest first, in units between decode steps. The queue itself
/// is the registry: each training is a row of it from its start on, any replica that is idle claims
/// the next one, and a restart goes on with its own. Thread-safe.
class TrainingQueue : public Trainings {
 public:
  TrainingQueue(TrainingParts parts, TrainingQueueOptions options);
  /// Everything must have ended: see `EndAll`.
  ~TrainingQueue() override;

  /// At the daemon's start, before any other call: begins to claim trainings.
  void Resume();

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

  /// Refuses new trainings and stops the one that runs behind a checkpoint, for the next start;
  /// all watchers are closed with `status`.
  void EndAll(const absl::Status& status);

 private:
  friend class TrainingRun;
  using RunPtr = std::shared_ptr<TrainingRun>;

  // Of a training that runs elsewhere or not yet.
  struct Waiting {
    int64_t row = 0;
    std::shared_ptr<TrainingSink> sink;
    TrainingReport told;
  };

  absl::Status CheckDocument(const store::Document& document) const;
  /// Null for one that doesn't run here.
  RunPtr Running(int64_t row) const;
  /// Called by a run at its very end: looks for the next one.
  void Finished(int64_t row);

  void Schedule() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // On the executor, as all that follow.
  void Poll();
  /// Starts the oldest training that nobody works on, unless one runs here.
  void ClaimNext();
  /// Null where the row can't be read, which ends it.
  RunPtr MakeRun(store::TrainingJob job);
  void KeepClaim(const RunPtr& run);
  void TellWaiting();

  const TrainingParts parts_;
  const TrainingQueueOptions options_;

  mutable store::Mutex mutex_;
  store::CondVar polled_;
  RunPtr running_ ABSL_GUARDED_BY(mutex_);
  bool claiming_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time claimed_ ABSL_GUARDED_BY(mutex_);  // or heard of
  std::map<uint64_t, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_sink_ ABSL_GUARDED_BY(mutex_) = 1;
  Timer::Id timer_ ABSL_GUARDED_BY(mutex_) = 0;
  bool polling_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace docmem::server
