#include "engine/compression/scorer_knorm.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>

#include "engine/formats/error.h"

namespace docmem::engine {

KnormScorer::KnormScorer(const ModelConfig& model, const Protection& protection,
                         const ScorerOptions& options)
    : first_scored_(protection.first_scored),
      scores_(at::empty({model.kv_heads, protection.scored},
                        at::TensorOptions(options.device).dtype(at::kFloat))) {}

void KnormScorer::Add(const ScorerRows& rows) {
  const int64_t begin = std::max(rows.first_row, first_scored_);
  const int64_t end = std::min(rows.keys.size(1), first_scored_ + scores_.size(1));
  if (begin >= end) return;
  const at::Tensor keys = rows.keys.narrow(1, begin, end - begin);
  scores_.narrow(1, begin - first_scored_, end - begin)
      .copy_(at::linalg_vector_norm(keys, 2, {-1}, /*keepdim=*/false, at::kFloat).neg_());
}

std::vector<at::Tensor> KnormScorer::Finish(int64_t layer, const std::vector<double>& blends) {
  if (!scores_.isfinite().all().item<bool>()) {
    ThrowInternal("layer " + std::to_string(layer), "norms of the keys aren't finite");
  }
  return std::vector<at::Tensor>(blends.size(), scores_);
}

}  // namespace docmem::engine
