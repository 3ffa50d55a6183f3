#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "engine/compression/scorer.h"

namespace docmem::engine {

inline constexpr int64_t kCompactorFirstTokens = 8;
inline constexpr int64_t kCompactorLastTokens = 4;
inline constexpr int64_t kCompactorChunk = 256;
inline constexpr int64_t kCompactorSketchColumns = 48;

/// Lower factor L with gram + jitter·1 = L Lᵀ, [G, n, n] fp32. Jitter ×10 for all heads together
/// where that fails; five failures throw `kInternal` naming the layer.
at::Tensor GramFactor(const at::Tensor& gram, double jitter, int64_t layer);

/// Approximate statistical leverage of keys (Chari and Van Durme, Compactor, arXiv 2507.08143, with
/// the Cholesky solve of kvpress 0.5.5): x = (k − mean over M) · sketch/√48 in fp32, score =
/// max(0, xᵀ (XᵀX + jitter)⁻¹ x). pre_rope_keys [G, M, D] in any dtype, M ≥ 1; sketch [G, D, 48]
/// standard normal → [G, M] fp32. Jitter 1e-2, see `GramFactor`.
at::Tensor CompactorLeverage(const at::Tensor& pre_rope_keys, const at::Tensor& sketch,
                             int64_t layer);

/// Softmax mass that each key of one chunk gets from all queries of the chunk, without 1/√D and
/// without causality. queries [c, H, D], keys [G, c, D], c ≤ 256, fp32 → [H, c]. A shorter chunk
/// counts as padded to 256: padded keys (score −1e-9) take mass, padded queries spread theirs
/// evenly.
at::Tensor CompactorChunkAttention(const at::Tensor& queries, const at::Tensor& keys);

/// Average over three neighbours, zeros beyond both ends: [G, M] → [G, M].
at::Tensor CompactorPool(const at::Tensor& scores);

/// (x − mean) / max(std, 1e-6) over all elements, unbiased; one element has the floor as its std.
at::Tensor ZScore(const at::Tensor& x);

/// Profile `compactor`: blend · z(leverage) + z(attention · ‖v‖, pooled). Holds the layer's
/// pre-RoPE keys in the compute dtype, the queries of one chunk and one number per key.
class CompactorScorer : public Scorer {
 public:
  CompactorScorer(const ModelConfig& model, const Protection& protection,
                  const ScorerOptions& options);

  void Add(const ScorerRows& rows) override;
  std::vector<at::Tensor> Finish(int64_t layer, const std::vector<double>& blends) override;

 private:
  void AddQueries(const ScorerRows& rows, int64_t first, int64_t count);
  void ScoreChunk(const ScorerRows& rows);

  int64_t first_scored_ = 0;
  int64_t scored_ = 0;  // M
  SketchSource sketch_;
  at::Tensor pre_rope_keys_;  // [G, M, D]
  at::Tensor attention_;      // [G, M] fp32
  at::Tensor queries_;        // [256, H, D] fp32, the first `chunk_rows_` are filled
  int64_t chunk_rows_ = 0;
  int64_t scored_rows_ = 0;  // rows of the middle in finished chunks
};

}  // namespace docmem::engine
