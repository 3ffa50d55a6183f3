#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "engine/compression/scorer.h"

namespace docmem::engine {

/// Profile `streaming` (Xiao et al., StreamingLLM, arXiv 2309.17453, as kvpress 0.5.5
/// `StreamingLLMPress` with the head as its sinks): the later a token, the better.
class StreamingScorer : public Scorer {
 public:
  StreamingScorer(const ModelConfig& model, const Protection& protection,
                  const ScorerOptions& options);

  void Add(const ScorerRows&) override {}
  std::vector<at::Tensor> Finish(int64_t layer, const std::vector<double>& blends) override;

 private:
  at::Tensor scores_;  // [G, M] fp32
};

}  // namespace docmem::engine
