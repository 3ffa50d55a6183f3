#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "adapter_store/types.h"
#include "training/options.h"
#include "training/qa_pair.h"

namespace docmem::server {

/// What to train, checked for form.
struct TrainingRequest {
  training::TrainingOptions options;
  std::vector<training::QaPair> pairs;      ///< the user's own
  std::optional<uint32_t> synthetic_pairs;  ///< unset: as the document's length asks for
  bool keep_current = false;
};

enum class TrainingState { kQueued, kSynthesizing, kTraining, kSucceeded, kFailed, kCancelled };

/// How far a training is. Losses in nats per label token.
struct TrainingReport {
  std::string id;
  store::DocumentKey document;
  TrainingState state = TrainingState::kQueued;
  std::string message;      ///< why it failed
  TrainingRequest request;  ///< as used, without the pairs
  uint32_t step = 0;
  uint32_t total_steps = 0;
  double loss = 0.0;                   ///< of the last step
  std::optional<double> holdout_loss;  ///< of the last evaluation
  double tokens_per_second = 0.0;
  double remaining_seconds = 0.0;
  uint32_t qa_given = 0;
  uint32_t qa_synthesized = 0;
  uint32_t qa_dropped = 0;
  uint32_t adapter_version = 0;
  absl::Time created = absl::InfinitePast();
  absl::Time started = absl::InfinitePast();  ///< infinite past: not yet, as the next
  absl::Time ended = absl::InfinitePast();

  bool has_ended() const { return state >= TrainingState::kSucceeded; }
};

struct TrainingStep {
  uint32_t step = 0;
  uint32_t total_steps = 0;
  double loss = 0.0;
  std::optional<double> holdout_loss;  ///< only behind an evaluation
  double learning_rate = 0.0;
  double gradient_norm = 0.0;
  double tokens_per_second = 0.0;
  double remaining_seconds = 0.0;
};

/// Takes what becomes of a training. Calls come one at a time, from any thread, and must neither
/// block nor call back: a lock of the training is held.
class TrainingSink {
 public:
  virtual ~TrainingSink() = default;
  /// At once, and at every change of state.
  virtual void OnReport(const TrainingReport& report) = 0;
  virtual void OnStep(const TrainingStep& step) = 0;
  /// Once and last. OK: the training has ended, as the last report said.
  virtual void OnClosed(const absl::Status& status) = 0;
};

/// Where services hand in trainings without knowing tensors. Thread-safe. All but `Leave` may block
/// on the registry. An unknown id is NOT_FOUND (JOB_NOT_FOUND).
class Trainings {
 public:
  virtual ~Trainings() = default;

  /// INVALID_ARGUMENT (rank), NOT_FOUND and FAILED_PRECONDITION (document), RESOURCE_EXHAUSTED
  /// (QUEUE_FULL), UNAVAILABLE when closed.
  virtual absl::StatusOr<TrainingReport> Start(const store::DocumentKey& document,
                                               TrainingRequest request) = 0;
  virtual absl::StatusOr<TrainingReport> Get(const std::string& id) = 0;
  /// Newest first; an empty `document` stands for all of the collection.
  virtual absl::StatusOr<store::Page<TrainingReport>> List(const std::string& collection,
                                                           const std::string& document,
                                                           const store::PageRequest& page) = 0;
  /// FAILED_PRECONDITION (JOB_FINISHED) when it has ended or stores its adapter already.
  virtual absl::StatusOr<TrainingReport> Cancel(const std::string& id) = 0;

  /// The sink is told the report inside this call. Returns what `Leave` needs.
  virtual absl::StatusOr<uint64_t> Watch(const std::string& id,
                                         std::shared_ptr<TrainingSink> sink) = 0;
  /// The sink is called no more, but for a call that is under way.
  virtual void Leave(const std::string& id, uint64_t sink) = 0;
};

}  // namespace docmem::server
