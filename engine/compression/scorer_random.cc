#include "engine/compression/scorer_random.h"

#include <ATen/ATen.h>

#include "engine/compression/philox.h"

namespace docmem::engine {

at::Tensor RandomScores(uint64_t seed, int64_t layer, int64_t kv_heads, int64_t first,
                        int64_t count) {
  constexpr float kUnit = 1.0F / 16777216.0F;
  at::Tensor scores = at::empty({kv_heads, count}, at::TensorOptions(at::kFloat));
  float* out = scores.mutable_data_ptr<float>();
  for (int64_t head = 0; head < kv_heads; ++head) {
    for (int64_t position = first; position < first + count; ++position) {
      const PhiloxCounter counter = {static_cast<uint32_t>(position), 0,
                                     static_cast<uint32_t>(head), static_cast<uint32_t>(layer)};
      *out++ = static_cast<float>(Philox4x32(counter, seed)[0] >> 8) * kUnit;
    }
  }
  return scores;
}

RandomScorer::RandomScorer(const ModelConfig& model, const Protection& protection,
                           const ScorerOptions& options)
    : protection_(protection), kv_heads_(model.kv_heads), seed_(options.seed) {}

std::vector<at::Tensor> RandomScorer::Finish(int64_t layer, const std::vector<double>& blends) {
  return std::vector<at::Tensor>(
      blends.size(),
      RandomScores(seed_, layer, kv_heads_, protection_.first_scored, protection_.scored));
}

}  // namespace docmem::engine
