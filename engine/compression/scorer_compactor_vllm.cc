#include "engine/compression/scorer_compactor_vllm.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/compression/scorer_compactor.h"
#include "engine/formats/error.h"

namespace docmem::engine {
namespace {

constexpr double kJitter = 5e-3;
constexpr double kStdFloor = 1e-6;
constexpr int64_t kQueryTile = 64;

}  // namespace

at::Tensor PopulationZScore(const at::Tensor& x) {
  return (x - x.mean()) / x.std(/*unbiased=*/false).clamp_min(kStdFloor);
}

at::Tensor VllmLeverage(const at::Tensor& pre_rope_keys, const at::Tensor& sketch, int64_t layer) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(sketch.size(1)));
  const at::Tensor centred = pre_rope_keys - pre_rope_keys.mean(1, /*keepdim=*/true);
  const at::Tensor x = at::matmul(centred, sketch * scale);
  const at::Tensor factor = GramFactor(at::matmul(x.transpose(1, 2), x), kJitter, layer);
  const at::Tensor solved = at::cholesky_solve(x.transpose(1, 2), factor);
  return PopulationZScore((x * solved.transpose(1, 2)).sum(-1).clamp_min_(0.0));
}

at::Tensor VllmChunkAttention(const at::Tensor& queries, const at::Tensor& keys) {
  const int64_t rows = queries.size(0), groups = keys.size(0);
  const int64_t repeat = queries.size(1) / groups;
  const at::Tensor q = queries.transpose(0, 1).reshape({groups, repeat * rows, -1});
  const at::Tensor mass = at::softmax(at::matmul(q, keys.transpose(1, 2)), -1).sum(1);
  const int64_t filled_up = (kQueryTile - rows % kQueryTile) % kQueryTile;
  return mass + static_cast<double>(filled_up * repeat) / static_cast<double>(kVllmAttentionChunk);
}

void ChunkBuffer::Add(const at::Tensor& rows,
                      const std::function<void(int64_t, const at::Tensor&)>& visit) {
  for (int64_t taken = 0; taken < rows.size(0);) {
    const at::Tensor chunk = Append(rows, &taken);
    if (!chunk.defined()) continue;
    visit(first_, chunk);
    first_ = (first_ + filled_) % total_;
    filled_ = 0;
  }
}

// Takes rows from `taken` on; the chunk when it is complete.
at::Tensor ChunkBuffer::Append(const at::Tensor& rows, int64_t* taken) {
  if (!rows_.defined()) {
    rows_ = at::empty({size_, rows.size(1), rows.size(2)}, rows.options().dtype(at::kFloat));
  }
  const int64_t wanted = std::min(size_, total_ - first_);
  const int64_t count = std::min(rows.size(0) - *taken, wanted - filled_);
  rows_.narrow(0, filled_, count).copy_(rows.narrow(0, *taken, count));
  *taken += count;
  filled_ += count;
  return filled_ == wanted ? rows_.narrow(0, 0, filled_) : at::Tensor();
}

CompactorVllmScorer::CompactorVllmScorer(const ModelConfig& model, const Protection& protection,
                                         const ScorerOptions& options)
    : protection_(protection),
      leverage_(at::empty({model.kv_heads, options.context_tokens},
                          at::TensorOptions(options.device).dtype(at::kFloat))),
      attention_(at::empty_like(leverage_)),
      keys_(kVllmLeverageChunk, options.context_tokens),
      queries_(kVllmAttentionChunk, options.context_tokens) {
  const SketchSource source = options.sketch ? options.sketch : PhiloxSketch(options.seed);
  sketch_ =
      source(0, {.kv_heads = 1, .head_dim = model.head_dim, .columns = kVllmSketchColumns})[0].to(
          options.device);
}

void CompactorVllmScorer::Add(const ScorerRows& rows) {
  keys_.Add(rows.pre_rope_keys, [this](int64_t first, const at::Tensor& keys) {
    leverage_.narrow(1, first, keys.size(0))
        .copy_(VllmLeverage(keys.transpose(0, 1), sketch_, layer_));
  });
  queries_.Add(rows.queries, [&](int64_t first, const at::Tensor& queries) {
    const at::Tensor keys = rows.keys.narrow(1, first, queries.size(0)).to(at::kFloat);
    attention_.narrow(1, first, queries.size(0)).copy_(VllmChunkAttention(queries, keys));
  });
}

std::vector<at::Tensor> CompactorVllmScorer::Finish(int64_t layer,
                                                    const std::vector<double>& blends) {
  layer_ = layer + 1;
  const auto middle = [this](const at::Tensor& all) {
    return all.narrow(1, protection_.first_scored, protection_.scored);
  };
  const at::Tensor attention = middle(PopulationZScore(attention_));
  const at::Tensor leverage = middle(leverage_);
  if (!(leverage.sum() + attention.sum()).isfinite().item<bool>()) {
    ThrowInternal("layer " + std::to_string(layer), "scores of the tokens aren't finite");
  }
  std::vector<at::Tensor> scores;
  scores.reserve(blends.size());
  for (const double blend : blends) scores.push_back(leverage * blend + attention);
  return scores;
}

}  // namespace docmem::engine
