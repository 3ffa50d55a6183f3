#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/compression/scorer.h"

namespace docmem::engine {

inline constexpr int64_t kVllmFirstTokens = 16;
inline constexpr int64_t kVllmLastTokens = 64;
inline constexpr int64_t kVllmLeverageChunk = 512;
inline constexpr int64_t kVllmAttentionChunk = 128;
inline constexpr int64_t kVllmSketchColumns = 48;

/// Leverage of the keys of one chunk: x = (k − mean of the chunk) · sketch/√48 in fp32, score =
/// xᵀ (XᵀX + 5e-3)⁻¹ x, z-scored over the chunk's heads and tokens. pre_rope_keys [G, c, D] fp32,
/// c ≤ 512; sketch [D, 48] standard normal, the same for all heads → [G, c].
at::Tensor VllmLeverage(const at::Tensor& pre_rope_keys, const at::Tensor& sketch, int64_t layer);

/// Softmax mass that each key of one chunk gets from all queries of the chunk and all query heads
/// of its KV head, without 1/√D and without causality. queries [c, H, D], keys [G, c, D], c ≤ 128,
/// fp32 → [G, c]. Queries count in tiles of 64: those that fill up the last tile give every key
/// 1/128 per query head.
at::Tensor VllmChunkAttention(const at::Tensor& queries, const at::Tensor& keys);

/// (x − mean) / max(std, 1e-6) over all elements, std over n (not n − 1).
at::Tensor PopulationZScore(const at::Tensor& x);

/// Collects rows [T, N, D] that come in pieces into chunks of fixed size; the last may be shorter.
class ChunkBuffer {
 public:
  /// `total_rows` come in all before it starts again.
  ChunkBuffer(int64_t chunk_rows, int64_t total_rows) : size_(chunk_rows), total_(total_rows) {}

  /// Calls `visit(first_row, chunk [c, N, D] fp32)` for each chunk that `rows` complete; the tensor
  /// is valid during the call.
  void Add(const at::Tensor& rows,
           const std::function<void(int64_t first_row, const at::Tensor& chunk)>& visit);

 private:
  at::Tensor Append(const at::Tensor& rows, int64_t* taken);

  int64_t size_;
  int64_t total_;
  int64_t first_ = 0;   // row at which the chunk under way begins
  int64_t filled_ = 0;  // its rows so far
  at::Tensor rows_;     // [size, N, D] fp32
};

/// Profile `compactor-vllm`: as the engine of Compactor's authors (Chari and Van Durme, arXiv
/// 2507.08143; github.com/vnchari/compactor-vllm) computes it: blend · leverage + attention, both
/// over the whole context with its head and protected tokens, chunks counted from the first one;
/// neither ‖v‖ nor pooling. Their SVD is a Cholesky solve here, everything is fp32, and the sketch
/// is layer 0's and head 0's of `SketchSource`. They round kept heads up to pages of 128 rows; that
/// belongs to their storage and isn't done here. Holds two numbers per key and two chunks of rows.
class CompactorVllmScorer : public Scorer {
 public:
  CompactorVllmScorer(const ModelConfig& model, const Protection& protection,
                      const ScorerOptions& options);

  void Add(const ScorerRows& rows) override;
  std::vector<at::Tensor> Finish(int64_t layer, const std::vector<double>& blends) override;

 private:
  Protection protection_;
  at::Tensor sketch_;     // [D, 48]
  at::Tensor leverage_;   // [G, S] fp32
  at::Tensor attention_;  // [G, S] fp32
  ChunkBuffer keys_;
  ChunkBuffer queries_;
  int64_t layer_ = 0;
};

}  // namespace docmem::engine
