#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "engine/model/model_config.h"

namespace docmem::engine {

/// Rotary position embedding (arXiv 2104.09864). Frequencies and angles are fp32 in the operator
/// order of transformers (modeling_rope_utils): double precision here would move the logits by 1e-2
/// at position 60,000. Const after construction.
class RopeTable {
 public:
  /// `head_dim` is even.
  RopeTable(const RopeConfig& config, int64_t head_dim, at::Device device);

  /// [D/2] fp32
  const at::Tensor& inverse_frequencies() const { return inverse_frequencies_; }
  /// YaRN's temperature, 1 for the other types; multiplies cosine and sine.
  double attention_factor() const { return attention_factor_; }

  /// Cosine and sine [T, D/2] fp32 of some positions' angles, times the attention factor.
  struct Rotation {
    at::Tensor cosine;
    at::Tensor sine;
  };
  /// positions [T] int64.
  Rotation At(const at::Tensor& positions) const;

  /// x [T, heads, D] rotated to the positions of `rotation`, in x's dtype: dimension i turns with
  /// dimension i + D/2.
  static at::Tensor Rotate(const at::Tensor& x, const Rotation& rotation);

 private:
  at::Tensor inverse_frequencies_;
  double attention_factor_ = 1.0;
};

}  // namespace docmem::engine
