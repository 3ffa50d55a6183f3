#include "training/trainer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "engine/formats/digest.h"
#include "engine/formats/error.h"
#include "engine/model/transformer.h"
#include "training/order.h"
#include "training/peft_folder.h"

namespace docmem::training {
namespace {

constexpr uint64_t kPrefixBudgetBytes = uint64_t{512} << 20;
// Parts of the work that draw numbers.
constexpr uint32_t kWeightsPart = 1;
constexpr uint32_t kDropoutPart = 2;
constexpr uint32_t kHoldoutStream = 0;  // of the order; epoch e has stream e + 1

LoraShape ShapeOf(const TrainingOptions& options) {
  ValidateOptions(options);
  return {.rank = options.rank, .scale = LoraScale(options), .modules = options.modules};
}

int64_t CeilDivide(int64_t count, int64_t by) { return (count + by - 1) / by; }

}  // namespace

Trainer::Trainer(std::shared_ptr<const engine::Engine> engine, TrainingOptions options,
                 std::vector<Example> examples, std::string_view checkpoint)
    : engine_(std::move(engine)),
      options_(std::move(options)),
      examples_(std::move(examples)),
      training_(Shuffled(examples_.size(), options_.seed, kHoldoutStream)),
      parameters_(engine_->config(), ShapeOf(options_), engine_->transformer().device(),
                  DerivedSeed(options_.seed, kWeightsPart, 0)),
      optimizer_(parameters_),
      prefixes_(engine_->transformer(), kPrefixBudgetBytes) {
  if (examples_.empty()) engine::ThrowInvalidArgument("examples", "there are none to train on");
  const auto held_out =
      static_cast<int64_t>(options_.holdout * static_cast<double>(examples_.size()));
  if (held_out >= kMinHeldOut) {
    holdout_.assign(training_.end() - held_out, training_.end());
    training_.resize(training_.size() - holdout_.size());
  }
  if (!checkpoint.empty()) Restore(ReadCheckpoint(checkpoint, InputsDigest()));
}

Trainer::~Trainer() = default;

int64_t Trainer::steps_per_epoch() const {
  return CeilDivide(static_cast<int64_t>(training_.size()),
                    int64_t{options_.batch_size} * options_.accumulation);
}

bool Trainer::evaluating() const {
  return !holdout_.empty() && state_.evaluations < state_.step / steps_per_epoch();
}

bool Trainer::finished() const {
  if (evaluating()) return false;
  return state_.step == progress().total_steps || state_.bad_evaluations >= options_.patience;
}

TrainingEvent Trainer::Step() {
  if (evaluating()) return EvaluateUnit();
  return finished() ? TrainingEvent::kFinished : TrainUnit();
}

TrainingProgress Trainer::progress() const {
  return {.step = state_.step,
          .total_steps = steps_per_epoch() * options_.epochs,
          .loss = state_.loss,
          .holdout_loss = state_.holdout_loss,
          .learning_rate = learning_rate_,
          .gradient_norm = gradient_norm_,
          .trained_tokens = state_.trained_tokens};
}

void Trainer::StartWindow() {
  if (evaluating()) {
    window_ = holdout_;
  } else {
    const int64_t epoch = state_.step / steps_per_epoch();
    const auto order = Shuffled(training_.size(), options_.seed, static_cast<uint32_t>(epoch) + 1);
    const size_t size = size_t{options_.batch_size} * options_.accumulation;
    const size_t first = static_cast<size_t>(state_.step % steps_per_epoch()) * size;
    window_.clear();
    for (size_t i = first; i < std::min(first + size, order.size()); ++i) {
      window_.push_back(training_[order[i]]);
    }
  }
  window_done_ = 0;
  window_labels_ = 0;
  window_rows_ = 0;
  window_loss_ = 0.0;
  for (const size_t index : window_) window_labels_ += examples_[index].label_count();
}

void Trainer::StartMicroBatch() {
  if (window_done_ == window_.size()) StartWindow();
  const bool training = !evaluating();
  const uint64_t dropout_seed =
      DerivedSeed(options_.seed, kDropoutPart, static_cast<uint32_t>(state_.step),
                  static_cast<uint32_t>(window_done_));
  std::vector<const Example*> examples;
  while (window_done_ < window_.size() && examples.size() < options_.batch_size) {
    examples.push_back(&examples_[window_[window_done_++]]);
  }
  pass_ = std::make_unique<MicroBatch>(
      engine_->transformer(), parameters_, &prefixes_, std::move(examples),
      PassOptions{.gradients = training,
                  .loss_scale = 1.0 / static_cast<double>(window_labels_),
                  .recompute = options_.recompute,
                  .dropout = training ? options_.dropout : 0.0,
                  .dropout_seed = dropout_seed});
}

TrainingEvent Trainer::TrainUnit() {
  if (pass_ == nullptr) StartMicroBatch();
  if (!pass_->Step()) return TrainingEvent::kNone;
  window_loss_ += pass_->loss_sum();
  window_rows_ += pass_->rows();
  pass_.reset();
  return window_done_ < window_.size() ? TrainingEvent::kNone : Update();
}

TrainingEvent Trainer::Update() {
  learning_rate_ = LearningRate(options_, state_.step, progress().total_steps);
  gradient_norm_ = optimizer_.Step(parameters_, {.learning_rate = learning_rate_,
                                                 .weight_decay = options_.weight_decay,
                                                 .max_gradient_norm = options_.max_gradient_norm});
  state_.loss = window_loss_ / static_cast<double>(window_labels_);
  state_.trained_tokens += static_cast<uint64_t>(window_rows_);
  ++state_.step;
  return TrainingEvent::kStep;
}

TrainingEvent Trainer::EvaluateUnit() {
  if (pass_ == nullptr) StartMicroBatch();
  if (!pass_->Step()) return TrainingEvent::kNone;
  window_loss_ += pass_->loss_sum();
  pass_.reset();
  return window_done_ < window_.size() ? TrainingEvent::kNone : EndEvaluation();
}

TrainingEvent Trainer::EndEvaluation() {
  const double loss = window_loss_ / static_cast<double>(window_labels_);
  state_.holdout_loss = loss;
  ++state_.evaluations;
  if (!state_.best_loss || loss < *state_.best_loss) {
    state_.best_loss = loss;
    state_.best_values = parameters_.values().clone();
    state_.bad_evaluations = 0;
  } else {
    ++state_.bad_evaluations;
  }
  return TrainingEvent::kEvaluation;
}

void Trainer::Restore(TrainingState state) {
  const at::Tensor values = std::exchange(state.values, {});
  if (values.sizes() != parameters_.values().sizes()) {
    engine::ThrowDataLoss("values", "the checkpoint's weights have another size");
  }
  parameters_.values().copy_(values);
  optimizer_.first_moment().copy_(std::exchange(state.first_moment, {}));
  optimizer_.second_moment().copy_(std::exchange(state.second_moment, {}));
  optimizer_.set_steps(state.step);
  if (state.best_values.defined()) state.best_values = state.best_values.to(values.device());
  state_ = std::move(state);
}

std::string Trainer::InputsDigest() const {
  engine::Sha256 digest;
  digest.Update(OptionsJson(options_));
  digest.Update(engine_->identity().weights_digest + engine_->identity().config_digest);
  const auto add = [&digest](const std::vector<int32_t>& ids) {
    digest.Update(std::to_string(ids.size()) + ":");
    digest.Update(std::as_bytes(std::span(ids)));
  };
  for (const Example& example : examples_) {
    add(example.prefix_ids);
    add(example.row_ids);
    add(example.labels);
  }
  return digest.Hex();
}

std::string Trainer::Checkpoint() const {
  TrainingState state = state_;
  state.values = parameters_.values();
  state.first_moment = optimizer_.first_moment();
  state.second_moment = optimizer_.second_moment();
  return WriteCheckpoint(state, InputsDigest());
}

engine::PeftFolder Trainer::Export() const {
  const at::Tensor& best = state_.best_values.defined() ? state_.best_values : parameters_.values();
  return MakePeftFolder(parameters_.Copy(best.cpu(), engine_->transformer().dtype()), options_,
                        engine_->config().name);
}

}  // namespace docmem::training
