#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace docmem::training {

/// What a training's future depends on, as of its last completed step. Order, dropout and learning
/// rate are functions of the options and these numbers, so there is no other random state.
struct TrainingState {
  int64_t step = 0;
  int64_t evaluations = 0;
  int64_t bad_evaluations = 0;         ///< since the best one
  std::optional<double> best_loss;     ///< of the held-out part
  double loss = 0.0;                   ///< of the last step
  std::optional<double> holdout_loss;  ///< of the last evaluation
  uint64_t trained_tokens = 0;
  at::Tensor values;         ///< [N] fp32, as all of these
  at::Tensor first_moment;   ///< [N]
  at::Tensor second_moment;  ///< [N]
  at::Tensor best_values;    ///< [N]; undefined before the first evaluation
};

/// A sealed file (engine/artifacts/sealed_file.h): the tensors by name, the numbers and `inputs` in
/// the metadata. `inputs` is a digest of all that the training was started with. Equal arguments
/// give equal bytes.
std::string WriteCheckpoint(const TrainingState& state, const std::string& inputs);

/// Throws `kDataLoss` when the file is damaged, `kFailedPrecondition` when it is of another format
/// version or of a training with other inputs. Tensors are copies on the CPU.
TrainingState ReadCheckpoint(std::string_view file, const std::string& inputs);

}  // namespace docmem::training
