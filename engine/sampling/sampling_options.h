#pragma once

#include <cstdint>

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

}  // namespace docmem::engine
