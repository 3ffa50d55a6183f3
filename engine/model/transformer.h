#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>

#include "engine/kernels/cpu_path.h"
#include "engine/model/lora.h"
#include "engine/model/model_config.h"
#include "engine/model/rope.h"
#include "engine/model/weights.h"

namespace docmem::engine {

class FusedLayers;

/// How the CPU kernels compute.
struct KernelOptions {
  CpuPath path = UsableCpuPaths().back();  ///< one of `UsableCpuPaths()`
  /// Matrices as int8, one scale per output. The plain operators keep the exact ones.
  bool int8_weights = false;
};

/// Cosine and sine of the positions of T rows.
using Rotation = RopeTable::Rotation;

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
///     rotation = RotationOf(positions)
///     per layer: qkv = Project(layer, hidden, adapters); k, q = Rotate(..., rotation); attention;
///                hidden = Finish(layer, hidden, attended, adapters)
///     logits = Logits(hidden)
///
/// Plain differentiable operators; in inference mode on the CPU the kernels of `FusedLayers`, whose
/// rows are the same bits in any batch. Const and free of state after
/// construction; used from the thread that runs tensor work. `adapters` covers the rows that have
/// an adapter, in row order and without overlap; rows in no span are base rows. Rows don't
/// influence each other.
class Transformer {
 public:
  Transformer(ModelConfig config, Weights weights, const KernelOptions& options = {});
  ~Transformer();
  Transformer(Transformer&&) noexcept;

  const ModelConfig& config() const { return *config_; }
  at::ScalarType dtype() const;
  at::Device device() const;
  uint64_t parameters() const;
  /// Memory that the weights take; what is mapped from files doesn't count.
  uint64_t weight_bytes() const;

  /// ids [T] int64 on the model's device → hidden [T, hidden].
  at::Tensor Embed(const at::Tensor& ids) const;

  /// Input norm, q/k/v projections (with bias and q/k norm where the family has them), before
  /// RoPE. hidden [T, hidden].
  Qkv Project(int64_t layer, const at::Tensor& hidden, std::span<const AdapterSpan> adapters) const;

  /// positions [T] int64 on the model's device.
  Rotation RotationOf(const at::Tensor& positions) const { return rope_.At(positions); }

  /// x [T, heads, D] rotated to the rows' positions.
  at::Tensor Rotate(const at::Tensor& x, const Rotation& rotation) const;

  /// Causal attention of a prefill's rows: q [T, H, D]; keys and values [G, offset + T, D], a
  /// head's rows one behind the other, the last T of them the rows' own → [T, H, D].
  at::Tensor Attend(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values,
                    int64_t offset) const;

  /// Output projection, residual, and the MLP with its norm and residual.
  /// hidden [T, hidden], attended [T, H, D] → hidden of the next layer [T, hidden].
  at::Tensor Finish(int64_t layer, const at::Tensor& hidden, const at::Tensor& attended,
                    std::span<const AdapterSpan> adapters) const;

  /// Final norm and output head: hidden [T, hidden] → logits [T, V] in fp32.
  at::Tensor Logits(const at::Tensor& hidden) const;

  /// The kernels where the calling thread may use them now: inference mode on the CPU; else null.
  const FusedLayers* fused() const;

 private:
  at::Tensor Linear(int64_t layer, Module module, const at::Tensor& x,
                    std::span<const AdapterSpan> adapters) const;

  std::unique_ptr<const ModelConfig> config_;  // the kernels refer to it
  Weights weights_;
  RopeTable rope_;
  std::unique_ptr<const FusedLayers> fused_;  // null on a GPU
};

}  // namespace docmem::engine
