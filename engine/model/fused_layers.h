#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "engine/kernels/kernels.h"
#include "engine/model/lora.h"
#include "engine/model/model_config.h"
#include "engine/model/weights.h"

namespace docmem::engine {

struct KernelOptions;

/// The transformer's layers on the CPU kernels: packed weights, with norms, projections, adapters,
/// activation and residuals of a half layer in one run of all threads. Same results as the plain
/// operators of `Transformer` but for the order of sums, and batch-invariant, which those aren't.
/// Not differentiable. Const after construction; used from the thread that runs tensor work.
class FusedLayers {
 public:
  /// Packs all matrices of `weights` (CPU tensors, fp32 or bf16).
  FusedLayers(const ModelConfig& config, const Weights& weights, const KernelOptions& options);

  const KernelTable& kernels() const { return kernels_; }
  uint64_t bytes() const;

  /// hidden [T, hidden] → queries, keys, values side by side [T, (H + 2·G)·D], before RoPE.
  at::Tensor Project(int64_t layer, const at::Tensor& hidden,
                     std::span<const AdapterSpan> adapters) const;
  /// x [T, heads, D] (rows may be strided) → [T, heads, D]; cosine, sine [T, D/2] fp32.
  at::Tensor Rotate(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine) const;
  /// hidden [T, hidden], attended [T, H·D] → hidden of the next layer [T, hidden].
  at::Tensor Finish(int64_t layer, const at::Tensor& hidden, const at::Tensor& attended,
                    std::span<const AdapterSpan> adapters) const;
  /// hidden [T, hidden] → logits [T, V] fp32.
  at::Tensor Logits(const at::Tensor& hidden) const;

 private:
  struct Layer {
    PackedMatrix qkv, o, gate_up, down;
    std::vector<float> qkv_bias, o_bias, gate_up_bias, down_bias;  // empty: none
    std::vector<float> input_norm, post_attention_norm, q_norm, k_norm;
  };

  const ModelConfig& config_;
  const KernelTable& kernels_;
  std::vector<Layer> layers_;
  PackedMatrix head_;
  std::vector<float> final_norm_;
};

}  // namespace docmem::engine
