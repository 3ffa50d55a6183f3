#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace docmem::engine {

/// Attention over one set of keys, with what is needed to join it with attention over another.
struct AttentionPart {
  at::Tensor out;  ///< [T, H, D] in the queries' dtype
  at::Tensor lse;  ///< [T, H] fp32: log of the sum of exp(q·k/√D) over this part's keys
};

/// Every query sees every key. q [T, H, D]; keys, values [G, n, D] (views are fine: nothing is
/// copied or expanded over query heads), n ≥ 1. Query head h reads KV head h / (H/G).
AttentionPart AttendAll(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values);

/// Query row i sees keys 0 … offset + i. q [T, H, D]; keys, values [G, n, D], n ≥ offset + T.
AttentionPart AttendCausal(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values,
                           int64_t offset);

/// Softmax attention over the union of the parts' keys (each part at least one key; equal T, H, D),
/// joined through the log-sum-exps → [T, H, D]. One part comes back as it is.
at::Tensor JoinParts(std::span<const AttentionPart> parts);

}  // namespace docmem::engine
