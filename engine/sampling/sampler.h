#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <random>

namespace docmem::engine {

/// Temperature 0 is greedy (of equal logits the lowest id). Filters apply in the order top-k, then
/// top-p, on the tempered distribution, as transformers does.
struct SamplingOptions {
  double temperature = 0.0;  ///< 0 … 2
  double top_p = 1.0;        ///< (0, 1]
  uint32_t top_k = 0;        ///< 0: off
  uint64_t seed = 0;         ///< same seed, same logits: same tokens
};

/// Throws `kInvalidArgument` with the field's name ("temperature", "top_p", …) and value.
void ValidateSampling(const SamplingOptions& options);

struct SampledToken {
  int32_t id = 0;
  /// Raw log-softmax in fp32, before any sampling setting.
  float logprob = 0.0F;
};

/// Draws the tokens of one sequence. One per sequence, used from one thread.
class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options);

  /// logits [V] fp32. Throws `kInternal` when a logit is NaN or +∞.
  SampledToken Sample(const at::Tensor& logits);

 private:
  SamplingOptions options_;
  std::mt19937_64 random_;
};

/// Raw log-softmax in fp32 of `id` under logits [V] fp32. Throws as `Sample`.
float LogProbability(const at::Tensor& logits, int32_t id);

}  // namespace docmem::engine
