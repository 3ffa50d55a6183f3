// What a training does on the engine thread.

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "engine/formats/error.h"
#include "server/jobs/training_run.h"

namespace docmem::server {

using training::TrainingEvent;
using training::TrainingProgress;

bool TrainingRun::Step() { return trains_ ? TrainingUnit() : SynthesisUnit(); }

bool TrainingRun::SynthesisUnit() {
  if (!synthesis_) {
    std::vector<std::string> known;
    for (const training::QaPair& pair : stored_.request.pairs) known.push_back(pair.question);
    synthesis_ = std::make_unique<training::Synthesis>(
        queue_->parts_.engine, context_,
        training::SynthesisOptions{.pairs = *stored_.request.synthetic_pairs,
                                   .seed = options().seed},
        known);
    stage_began_ = absl::Now();
  }
  const bool done = synthesis_->Step();
  const training::SynthesisCounts& counts = synthesis_->counts();
  const double part = synthesis_->progress();
  const double elapsed = absl::ToDoubleSeconds(absl::Now() - stage_began_);
  store::MutexLock lock(&mutex_);
  report_.qa_synthesized = static_cast<uint32_t>(counts.kept);
  report_.qa_dropped = static_cast<uint32_t>(counts.empty + counts.duplicates + counts.ungrounded);
  if (part > 0.0) report_.remaining_seconds = elapsed * (1.0 - part) / part;
  return done;
}

void TrainingRun::MakeTrainer() {
  const auto make = [this](std::string_view checkpoint) {
    return std::make_unique<training::Trainer>(queue_->parts_.engine, options(), examples_,
                                               checkpoint);
  };
  try {
    trainer_ = make(checkpoint_);
  } catch (const engine::Error&) {
    if (checkpoint_.empty()) throw;
    trainer_ = make({});  // of another version of the program or model: from the start
  }
  checkpoint_.clear();
  examples_.clear();
  stage_began_ = last_checkpoint_ = absl::Now();
  first_ = trainer_->progress();
}

bool TrainingRun::TrainingUnit() {
  if (!trainer_) MakeTrainer();
  const TrainingEvent event = trainer_->Step();
  if (event == TrainingEvent::kNone) return false;
  ReportStep(event);
  if (event == TrainingEvent::kFinished) {
    adapter_ = trainer_->Export();
    return true;
  }
  const absl::Time now = absl::Now();
  if (now - last_checkpoint_ >= queue_->options_.checkpoint_interval && !saving_.exchange(true)) {
    last_checkpoint_ = now;
    SaveCheckpoint();
  }
  return false;
}

void TrainingRun::ReportStep(TrainingEvent event) {
  constexpr double kNoTime = 1e-9;
  const TrainingProgress progress = trainer_->progress();
  const double elapsed = std::max(kNoTime, absl::ToDoubleSeconds(absl::Now() - stage_began_));
  const auto steps = static_cast<double>(progress.step - first_.step);
  const auto left = static_cast<double>(progress.total_steps - progress.step);
  const auto tokens = static_cast<double>(progress.trained_tokens - first_.trained_tokens);
  TrainingStep step{.step = static_cast<uint32_t>(progress.step),
                    .total_steps = static_cast<uint32_t>(progress.total_steps),
                    .loss = progress.loss,
                    .learning_rate = progress.learning_rate,
                    .gradient_norm = progress.gradient_norm,
                    .tokens_per_second = tokens / elapsed,
                    .remaining_seconds = steps > 0 ? elapsed / steps * left : 0.0};
  if (event == TrainingEvent::kEvaluation) step.holdout_loss = progress.holdout_loss;
  if (event == TrainingEvent::kStep) queue_->parts_.metrics->TrainingStepFinished(progress.loss);

  store::MutexLock lock(&mutex_);
  report_.step = step.step;
  report_.total_steps = step.total_steps;
  report_.loss = step.loss;
  report_.holdout_loss = progress.holdout_loss;
  report_.tokens_per_second = step.tokens_per_second;
  report_.remaining_seconds = step.remaining_seconds;
  if (event == TrainingEvent::kFinished) return;
  for (const auto& [id, sink] : sinks_) sink->OnStep(step);
}

void TrainingRun::SaveCheckpoint() {
  queue_->parts_.executor->Run([self = shared_from_this(), checkpoint = trainer_->Checkpoint()] {
    self->WriteCheckpoint(checkpoint);
    self->saving_ = false;
  });
}

}  // namespace docmem::server
