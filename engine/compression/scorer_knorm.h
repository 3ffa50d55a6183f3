#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "engine/compression/scorer.h"

namespace docmem::engine {

/// Profile `knorm` (Devoto et al., A Simple and Effective L2 Norm-Based Strategy for KV Cache
/// Compression, arXiv 2406.11430, as kvpress 0.5.5 `KnormPress`): score = −‖k‖ in fp32, k the
/// cached key. Holds one number per key of a layer.
class KnormScorer : public Scorer {
 public:
  KnormScorer(const ModelConfig& model, const Protection& protection, const ScorerOptions& options);

  void Add(const ScorerRows& rows) override;
  std::vector<at::Tensor> Finish(int64_t layer, const std::vector<double>& blends) override;

 private:
  int64_t first_scored_ = 0;
  at::Tensor scores_;  // [G, M] fp32
};

}  // namespace docmem::engine
