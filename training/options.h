#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/module.h"

namespace docmem::training {

/// What the loss is computed on (arXiv 2606.05698); the layouts are in examples.h.
enum class Supervision {
  kSyntheticQa,          ///< questions and answers without the document in view
  kRawContext,           ///< windows of the document
  kContextContinuation,  ///< a chunk, given the chunk before it
  kContextQa,            ///< questions and answers with their source chunk in view
};

constexpr bool IsQa(Supervision supervision) {
  return supervision == Supervision::kSyntheticQa || supervision == Supervision::kContextQa;
}

/// "SYNTHETIC_QA", "RAW_CONTEXT", "CONTEXT_CONTINUATION", "CONTEXT_QA".
std::string_view SupervisionName(Supervision supervision);
std::optional<Supervision> SupervisionFromName(std::string_view name);

/// How one adapter is trained. The fields and their meaning are those of `TrainingOptions` in
/// proto/docmem/v1/training.proto. Where the defaults come from:
/// - *peft*: the default of PEFT 0.21's LoraConfig;
/// - *measured*: the recipe that demo/train_adapter.py was measured with on SmolLM2-135M (rank 3,
///   scale 2, 25 epochs at 2e-3 with a cosine to the end, gradients clipped at 1, no decay);
/// - *paper*: arXiv 2606.05698.
struct TrainingOptions {
  Supervision supervision = Supervision::kSyntheticQa;  ///< paper
  uint32_t rank = 8;                                    ///< peft; 1 … 64
  double alpha = 16.0;                                  ///< measured: scale 2; above 0
  std::vector<engine::Module> modules = {
      engine::Module::kQ,    engine::Module::kK,  engine::Module::kV,   engine::Module::kO,
      engine::Module::kGate, engine::Module::kUp, engine::Module::kDown};  ///< measured: all
  double dropout = 0.0;                                                    ///< peft; 0 to below 1
  bool rank_stabilised = false;                                            ///< peft
  uint32_t epochs = 25;                                                    ///< measured; 1 … 1000
  double learning_rate = 2e-3;  ///< measured; the peak; above 0
  double warmup = 0.05;         ///< part of all steps, 0 … 1: the first steps have no second moment
  double weight_decay = 0.0;    ///< measured; decoupled (arXiv 1711.05101)
  double max_gradient_norm = 1.0;  ///< measured; 0: no clipping
  uint32_t batch_size = 8;         ///< sequences per micro-batch
  uint32_t accumulation = 1;       ///< micro-batches per step
  /// Part of the examples held out for the early stop, 0 … 0.5; with fewer than
  /// `kMinHeldOut` none is, since their loss would say little.
  double holdout = 0.1;
  uint32_t patience = 3;   ///< evaluations (one per epoch) without improvement until the stop
  uint64_t seed = 0;       ///< of the first weights, the order, the held-out part and dropout
  bool recompute = false;  ///< layers' activations again in the backward pass: less memory
};

inline constexpr uint32_t kMaxTrainedRank = 64;
inline constexpr uint32_t kMaxEpochs = 1000;
inline constexpr int64_t kMinHeldOut = 8;

/// The defaults for a supervision: windows and chunks are ten times longer than questions, so a
/// micro-batch is one of them and a step four.
TrainingOptions DefaultOptions(Supervision supervision);

/// Throws `kInvalidArgument` with the field's name and value.
void ValidateOptions(const TrainingOptions& options);

/// All fields as a JSON object; equal options give equal texts.
std::string OptionsJson(const TrainingOptions& options);
/// The options of a text that `OptionsJson` has made. Throws `kDataLoss` for any other.
TrainingOptions OptionsFromJson(std::string_view text);

/// What the update is multiplied with: alpha/r, or alpha/√r.
double LoraScale(const TrainingOptions& options);

/// Learning rate of step 0 … `total_steps` − 1: rises linearly over the warm-up's steps (never 0),
/// then falls as half a cosine towards 0, as transformers' cosine schedule does.
double LearningRate(const TrainingOptions& options, int64_t step, int64_t total_steps);

}  // namespace docmem::training
