#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>

#include "engine/model/lora.h"
#include "engine/model/model_config.h"
#include "engine/model/rope.h"
#include "engine/model/weights.h"

namespace docmem::engine {

/// Queries, keys and values of T rows of one layer.
struct Qkv {
  at::Tensor q;  ///< [T, H, D]
  at::Tensor k;  ///< [T, G, D]
  at::Tensor v;  ///< [T, G, D]
};

/// The decoder-only transformer of the `llama` and `qwen3` families, as three steps per layer so
/// that its callers own the attention: prefill evicts between them, decoding joins two key sets.
///
///     hidden = Embed(ids)
///     per layer: qkv = Project(layer, hidden, adapters); k, q = Rotate(...); attention;
///                hidden = Finish(layer, hidden, attended, adapters)
///     logits = Logits(hidden)
///
/// Plain differentiable operators; callers choose inference mode. Const and free of state after
/// construction; used from the thread that runs tensor work. `adapters` covers the rows that have
/// an adapter, in row order and without overlap; rows in no span are base rows. Rows don't
/// influence each other.
class Transformer {
 public:
  Transformer(ModelConfig config, Weights weights);

  const ModelConfig& config() const { return config_; }
  at::ScalarType dtype() const;
  at::Device device() const;
  uint64_t weight_bytes() const;

  /// ids [T] int64 on the model's device → hidden [T, hidden].
  at::Tensor Embed(const at::Tensor& ids) const;

  /// Input norm, q/k/v projections (with bias and q/k norm where the family has them), before
  /// RoPE. hidden [T, hidden].
  Qkv Project(int64_t layer, const at::Tensor& hidden, std::span<const AdapterSpan> adapters) const;

  /// x [T, heads, D] rotated to `positions` [T] int64.
  at::Tensor Rotate(const at::Tensor& x, const at::Tensor& positions) const;

  /// Output projection, residual, and the MLP with its norm and residual.
  /// hidden [T, hidden], attended [T, H, D] → hidden of the next layer [T, hidden].
  at::Tensor Finish(int64_t layer, const at::Tensor& hidden, const at::Tensor& attended,
                    std::span<const AdapterSpan> adapters) const;

  /// Final norm and output head: hidden [T, hidden] → logits [T, V] in fp32.
  at::Tensor Logits(const at::Tensor& hidden) const;

 private:
  at::Tensor Linear(int64_t layer, Module module, const at::Tensor& x,
                    std::span<const AdapterSpan> adapters) const;

  ModelConfig config_;
  Weights weights_;
  RopeTable rope_;
};

}  // namespace docmem::engine
