#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "adapter_store/adapter_store.h"
#include "adapter_store/sync.h"
#include "engine/engine.h"
#include "server/jobs/training.h"
#include "server/jobs/training_codec.h"
#include "server/jobs/training_queue.h"
#include "server/runtime/engine_loop.h"
#include "training/synthesis.h"
#include "training/trainer.h"

namespace docmem::server {

/// What cancelling a training answers that has ended.
absl::Status JobFinished(int64_t row);

/// One training from its row to the stored adapter:
///   Prepare      (executor): read text and checkpoint
///   Step         (engine thread): the base model writes pairs; only where some are wanted
///   MakeExamples (executor): store the pairs, tokenise
///   Step         (engine thread): train; checkpoints go to the executor
///   StoreAdapter (executor): publish it, end the row
/// These run one at a time, in this order. The row ends with the training: a daemon that ends
/// before leaves it for the next start. An adapter that was stored just before its row ended is
/// found again by its content, since the same checkpoint leads to the same bits.
class TrainingRun : public TensorWork, public std::enable_shared_from_this<TrainingRun> {
 public:
  /// The queue must outlive the run.
  TrainingRun(TrainingQueue* queue, store::TrainingJob job, StoredTraining stored,
              TrainingReport report);

  int64_t row() const { return job_.id; }
  TrainingReport report() const;

  void Start();
  /// False when the run has ended already; then the sink isn't called. `told`: what it knows.
  bool Watch(uint64_t id, std::shared_ptr<TrainingSink> sink, const TrainingReport* told);
  void Leave(uint64_t sink);
  /// By a user. FAILED_PRECONDITION when it is too late, the status of `Suspend` when that came
  /// before. Blocks on the registry.
  absl::Status Cancel();
  /// The row says that it is cancelled.
  void CancelledElsewhere();
  /// The row is gone with its document. Blocks on the registry.
  void DocumentGone();
  /// Stops behind a checkpoint and leaves the row open; watchers are closed with `why`.
  void Suspend(const absl::Status& why);

  bool Step() override;  // TensorWork
  void OnClosed(const absl::Status& status) override;

 private:
  void Prepare();
  absl::Status ReadDocument();
  void ReadCheckpoint();
  void Post();
  void MakeExamples();
  void StoreAdapter();
  absl::StatusOr<uint32_t> PublishAdapter();

  const training::TrainingOptions& options() const { return stored_.request.options; }

  bool SynthesisUnit();
  bool TrainingUnit();
  void MakeTrainer();
  void ReportStep(training::TrainingEvent event);
  void SaveCheckpoint();
  /// Blocks on files. When the document is gone, so is the training.
  void WriteCheckpoint(const std::string& checkpoint);

  /// FAILED_PRECONDITION when it is too late.
  absl::Status CancelRun(bool end_row);
  /// Also tells the watchers.
  void ChangeState(TrainingState state);
  /// OK unless a user or the daemon's end has stopped it.
  absl::Status stopped() const;
  void Fail(const absl::Status& status);
  /// Ends the row with the report as it is now, then the run.
  void EndRow(store::TrainingJobState state);
  void Close(const absl::Status& status);
  void Warn(std::string_view what, const absl::Status& why) const;

  TrainingQueue* const queue_;
  const store::TrainingJob job_;
  StoredTraining stored_;
  store::Document document_;
  engine::Context context_;
  std::string checkpoint_;
  std::vector<training::Example> examples_;
  engine::PeftFolder adapter_;

  // Engine thread.
  std::unique_ptr<training::Synthesis> synthesis_;
  std::unique_ptr<training::Trainer> trainer_;
  bool trains_ = false;  // after the pairs
  absl::Time stage_began_;
  training::TrainingProgress first_;  // when this process began to train
  absl::Time last_checkpoint_;
  std::atomic<bool> saving_{false};  // a checkpoint is on its way to the disk

  mutable store::Mutex mutex_;
  TrainingReport report_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::shared_ptr<TrainingSink>> sinks_ ABSL_GUARDED_BY(mutex_);
  EngineLoop::Ticket work_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status stop_status_ ABSL_GUARDED_BY(mutex_);  // why it was stopped from outside
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  bool suspended_ ABSL_GUARDED_BY(mutex_) = false;
  bool storing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace docmem::server
