#include "engine/model/attention.h"

#include <ATen/ATen.h>

#include <tuple>
#include <vector>

namespace docmem::engine {
namespace {

// q [B, N, T, D]; keys, values [B, N, n, D] → out [B, N, T, D], log-sum-exp [B, N, T] fp32. With
// `causal`, row i sees keys 0 … i.
std::tuple<at::Tensor, at::Tensor> Fused(const at::Tensor& q, const at::Tensor& keys,
                                         const at::Tensor& values, bool causal) {
#ifdef DOCMEM_CUDA
  if (q.is_cuda() && q.scalar_type() == at::kFloat) {
    const auto result = at::_scaled_dot_product_efficient_attention(
        q, keys, values, /*attn_bias=*/{}, /*compute_log_sumexp=*/true, /*dropout_p=*/0.0, causal);
    return {std::get<0>(result), std::get<1>(result).narrow(2, 0, q.size(2))};
  }
  if (q.is_cuda()) {
    const auto result = at::_scaled_dot_product_flash_attention(q, keys, values,
                                                                /*dropout_p=*/0.0, causal);
    return {std::get<0>(result), std::get<1>(result)};
  }
#endif
  return at::_scaled_dot_product_flash_attention_for_cpu(q, keys, values, /*dropout_p=*/0.0,
                                                         causal);
}

AttentionPart Join(std::span<const AttentionPart> parts) {
  if (parts.size() == 1) return parts[0];
  std::vector<at::Tensor> lses;
  for (const AttentionPart& part : parts) lses.push_back(part.lse);
  const at::Tensor total = at::logsumexp(at::stack(lses), 0);
  at::Tensor out;
  for (const AttentionPart& part : parts) {
    const at::Tensor share = (part.lse - total).exp().unsqueeze(-1);
    const at::Tensor weighted = part.out.to(at::kFloat) * share;
    out = out.defined() ? out.add_(weighted) : weighted;
  }
  return {out.to(parts[0].out.scalar_type()), total};
}

// Rows see keys of the same rows up to their own. The keys are repeated over the query heads of a
// KV head by a stride of 0.
AttentionPart AttendSquare(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values) {
  const int64_t rows = q.size(0), heads = q.size(1), dim = q.size(2), groups = keys.size(0);
  const int64_t repeat = heads / groups;
  const at::Tensor queries = q.reshape({rows, groups, repeat, dim}).permute({2, 1, 0, 3});
  const auto [out, lse] = Fused(queries, keys.unsqueeze(0).expand({repeat, -1, -1, -1}),
                                values.unsqueeze(0).expand({repeat, -1, -1, -1}), /*causal=*/true);
  return {out.permute({2, 1, 0, 3}).reshape({rows, heads, dim}),
          lse.permute({2, 1, 0}).reshape({rows, heads})};
}

}  // namespace

AttentionPart AttendAll(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values) {
  const int64_t rows = q.size(0), heads = q.size(1), dim = q.size(2), groups = keys.size(0);
  const int64_t repeat = heads / groups;
  // All query heads of a KV head become rows of one head, so no key is read or stored twice.
  const at::Tensor queries = q.reshape({rows, groups, repeat, dim})
                                 .permute({1, 2, 0, 3})
                                 .reshape({1, groups, repeat * rows, dim});
  const auto [out, lse] = Fused(queries, keys.unsqueeze(0), values.unsqueeze(0), /*causal=*/false);
  return {out.reshape({groups, repeat, rows, dim}).permute({2, 0, 1, 3}).reshape(q.sizes()),
          lse.reshape({groups, repeat, rows}).permute({2, 0, 1}).reshape({rows, heads})};
}

AttentionPart AttendCausal(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values,
                           int64_t offset) {
  const int64_t rows = q.size(0);
  const AttentionPart own =
      AttendSquare(q, keys.narrow(1, offset, rows), values.narrow(1, offset, rows));
  if (offset == 0) return own;
  const AttentionPart earlier =
      AttendAll(q, keys.narrow(1, 0, offset), values.narrow(1, 0, offset));
  const AttentionPart parts[] = {earlier, own};
  return Join(parts);
}

at::Tensor JoinParts(std::span<const AttentionPart> parts) { return Join(parts).out; }

}  // namespace docmem::engine
