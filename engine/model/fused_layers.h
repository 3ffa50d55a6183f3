#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/kernels/kernels.h"
#include "engine/kernels/parallel.h"
#include "engine/model/lora.h"
#include "engine/model/lora_updates.h"
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
  /// As the plain `AttendCausal`, of the rows' own part alone: q [T, H, D], keys and values
  /// [G, offset + T, D] → [T, H, D]. Undefined where the path has no kernel for it.
  at::Tensor AttendCausal(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values,
                          int64_t offset) const;
  /// hidden [T, hidden], attended [T, H·D] → hidden of the next layer [T, hidden].
  at::Tensor Finish(int64_t layer, const at::Tensor& hidden, const at::Tensor& attended,
                    std::span<const AdapterSpan> adapters) const;
  /// hidden [T, hidden] → logits [T, V] fp32.
  at::Tensor Logits(const at::Tensor& hidden) const;

  /// One layer's attention, called by every worker at once: qkv [T, (H + 2·G)·D] before RoPE,
  /// attended [T, H·D] to be written. May use barriers.
  using AttendLayer = std::function<void(const Worker& worker, int64_t layer, const Matrix& qkv,
                                         const Matrix& attended)>;
  /// All layers in one run of the threads, for decoding, where a layer's work is small: hidden
  /// [T, hidden] is overwritten. The same bits as layer by layer.
  void Forward(const at::Tensor& hidden, std::span<const AdapterSpan> adapters,
               const AttendLayer& attend) const;

 private:
  struct Layer {
    PackedMatrix qkv, o, gate_up, down;
    std::vector<float> qkv_bias, o_bias, gate_up_bias, down_bias;  // empty: none
    std::vector<float> input_norm, post_attention_norm, q_norm, k_norm;
  };

  // What T rows of a layer need between its steps.
  struct Buffers {
    Buffers(const ModelConfig& config, int64_t rows, const at::TensorOptions& options);
    const at::Tensor& qkv_tensor() const { return tensors[2]; }

    std::vector<at::Tensor> tensors;
    Matrix x, residual, qkv, attended, gate_up, inner;
  };

  // The adapters' parts in a layer's products.
  struct Updates {
    Updates(const ModelConfig& config, int64_t layer, std::span<const AdapterSpan> adapters,
            const Buffers& buffers, const Matrix& result);
    LoraUpdates qkv, o, gate_up, down;
  };

  void ProjectOn(const Worker& worker, int64_t layer, const Matrix& hidden, const Buffers& buffers,
                 const LoraUpdates& updates) const;
  // `result` may be `hidden`.
  void FinishOn(const Worker& worker, int64_t layer, const Matrix& hidden, const Buffers& buffers,
                const Updates& updates, const Matrix& result) const;

  const ModelConfig& config_;
  const KernelTable& kernels_;
  float eps_;
  std::vector<Layer> layers_;
  PackedMatrix head_;
  std::vector<float> final_norm_;
};

}  // namespace docmem::engine
