#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <random>

#include "engine/sampling/sampling_options.h"

namespace docmem::engine {

struct SampledToken {
  int32_t id = 0;
  /// Raw log-softmax in fp32, before any sampling setting.
  float logprob = 0.0F;
};

/// Draws the tokens of one sequence. One per sequence, used from one thread.
class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options);

  /// logits [V] fp32, contiguous, on the CPU. Throws `kInternal` when a logit is NaN or +∞.
  SampledToken Sample(const at::Tensor& logits);

 private:
  SamplingOptions options_;
  std::mt19937_64 random_;
};

/// Raw log-softmax in fp32 of `id` under logits [V] fp32. Throws as `Sample`.
float LogProbability(const at::Tensor& logits, int32_t id);

}  // namespace docmem::engine
