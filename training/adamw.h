#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "training/lora_parameters.h"

namespace docmem::training {

/// One update of AdamW.
struct AdamWStep {
  double learning_rate = 0.0;
  double weight_decay = 0.0;       ///< decoupled
  double max_gradient_norm = 0.0;  ///< 0: no clipping
};

/// AdamW (arXiv 1711.05101) with torch's β = 0.9, 0.999 and ε = 1e-8, over all of an adapter's
/// weights as one tensor. One thread.
class AdamW {
 public:
  explicit AdamW(const LoraParameters& parameters);

  /// Scales the gradient down to `max_gradient_norm` where its norm is above it, updates the
  /// values, and sets the gradient to 0. Returns the norm before the scaling. Throws `kInternal`
  /// when the norm isn't finite; values and moments are then as before.
  double Step(const LoraParameters& parameters, const AdamWStep& step);

  /// For checkpoints; changed in place only.
  const at::Tensor& first_moment() const { return first_moment_; }    ///< [N] fp32
  const at::Tensor& second_moment() const { return second_moment_; }  ///< [N] fp32
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }

 private:
  at::Tensor first_moment_;
  at::Tensor second_moment_;
  int64_t steps_ = 0;
};

}  // namespace docmem::training
