#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "engine/compression/scorer.h"

namespace docmem::engine {

/// Uniform scores in [0, 1) of `count` tokens from position `first` on, [G, count] fp32: the upper
/// 24 bits of the first word of Philox4x32-10 with the seed as key and (position, 0, KV head,
/// layer) as counter, so that all are exact in fp32.
at::Tensor RandomScores(uint64_t seed, int64_t layer, int64_t kv_heads, int64_t first,
                        int64_t count);

/// Profile `random`: a baseline that looks at nothing. A token's score is a pure function of (seed,
/// layer, KV head, position).
class RandomScorer : public Scorer {
 public:
  RandomScorer(const ModelConfig& model, const Protection& protection,
               const ScorerOptions& options);

  void Add(const ScorerRows&) override {}
  std::vector<at::Tensor> Finish(int64_t layer, const std::vector<double>& blends) override;

 private:
  Protection protection_;
  int64_t kv_heads_ = 0;
  uint64_t seed_ = 0;
};

}  // namespace docmem::engine
