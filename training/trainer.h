#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "training/adamw.h"
#include "training/checkpoint.h"
#include "training/examples.h"
#include "training/micro_batch.h"
#include "training/options.h"

namespace docmem::training {

/// What a unit of work brought.
enum class TrainingEvent {
  kNone,        ///< a step or evaluation goes on
  kStep,        ///< the weights have been updated
  kEvaluation,  ///< the held-out part has been measured
  kFinished,    ///< nothing is left to do
};

struct TrainingProgress {
  int64_t step = 0;  ///< completed
  int64_t total_steps = 0;
  double loss = 0.0;                   ///< mean over the label tokens of the last step, in nats
  std::optional<double> holdout_loss;  ///< of the last evaluation
  double learning_rate = 0.0;          ///< of the last step in this process
  double gradient_norm = 0.0;          ///< of the last step in this process, before clipping
  uint64_t trained_tokens = 0;         ///< rows that went forward and backward in completed steps
};

/// Trains one adapter on examples, in units of work that a daemon runs between decode steps: a unit
/// is one layer forward or backward of one micro-batch (a few to some tens of milliseconds), or one
/// unit of a prefix's prefill, or some rows' logits.
///
/// A step is `accumulation` micro-batches of `batch_size` examples, the last one of an epoch what
/// is left; its loss is the mean over the label tokens of all of them. With a held-out part it is
/// measured after every epoch; training ends early after `patience` evaluations without
/// improvement, and the result are the weights of the best one.
///
/// Everything is a function of model, examples and options: interrupted after any unit and resumed
/// from `Checkpoint`, it ends with the same bits (same machine, dtype and number of threads). Used
/// from the thread that runs tensor work, outside inference mode. Holds the engine alive.
class Trainer {
 public:
  /// A new training, or with a `checkpoint` of an equal one its continuation. Throws
  /// `kInvalidArgument` (options, no examples), and as `ReadCheckpoint`.
  Trainer(std::shared_ptr<const engine::Engine> engine, TrainingOptions options,
          std::vector<Example> examples, std::string_view checkpoint = {});
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Runs one unit. Throws `kInternal` when a loss or gradient isn't finite; the state of the last
  /// completed step is then still there for `Checkpoint`, but `Step` mustn't be called again.
  TrainingEvent Step();

  TrainingProgress progress() const;
  /// Examples that are trained on and held out.
  size_t training_examples() const { return examples_.size() - holdout_.size(); }
  size_t holdout_examples() const { return holdout_.size(); }

  /// The state after the last completed step or evaluation; what has been computed since is
  /// computed again when it is resumed. About 12 bytes per trained number, 16 with a held-out part.
  std::string Checkpoint() const;

  /// The adapter as a PEFT folder in the model's dtype, with the numbers that the passes used: of
  /// the best evaluation where there is a held-out part, else of the last step.
  engine::PeftFolder Export() const;

 private:
  bool finished() const;
  bool evaluating() const;
  int64_t steps_per_epoch() const;
  void Restore(TrainingState state);
  std::string InputsDigest() const;
  void StartWindow();
  void StartMicroBatch();
  TrainingEvent TrainUnit();
  TrainingEvent Update();
  TrainingEvent EvaluateUnit();
  TrainingEvent EndEvaluation();

  std::shared_ptr<const engine::Engine> engine_;
  const TrainingOptions options_;
  const std::vector<Example> examples_;
  std::vector<size_t> training_;  // indices of examples
  std::vector<size_t> holdout_;
  LoraParameters parameters_;
  AdamW optimizer_;
  PrefixCache prefixes_;
  TrainingState state_;  // without `values` and moments, which the two above hold
  double learning_rate_ = 0.0;
  double gradient_norm_ = 0.0;

  // The step or evaluation under way.
  std::vector<size_t> window_;  // indices of its examples
  size_t window_done_ = 0;      // examples whose pass has been started
  int64_t window_labels_ = 0;
  int64_t window_rows_ = 0;
  double window_loss_ = 0.0;
  std::unique_ptr<MicroBatch> pass_;
};

}  // namespace docmem::training
