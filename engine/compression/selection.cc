#include "engine/compression/selection.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <tuple>

namespace docmem::engine {
namespace {

// The first `n` protected positions, or all; [count].
at::Tensor FirstProtected(const Protection& protection, int64_t n) {
  const size_t count = std::min(static_cast<size_t>(n), protection.order.size());
  return at::tensor(at::ArrayRef<int64_t>(protection.order.data(), count),
                    at::TensorOptions(at::kLong));
}

}  // namespace

Protection Protect(int64_t context_tokens, int64_t head_tokens, int64_t first_tokens,
                   int64_t last_tokens) {
  const int64_t first = std::min(std::max(head_tokens, first_tokens), context_tokens);
  const int64_t last = std::clamp<int64_t>(context_tokens - head_tokens, 0, last_tokens);
  Protection result;
  for (int64_t i = 0; i < head_tokens; ++i) result.order.push_back(i);
  for (int64_t i = 0; i < last; ++i) result.order.push_back(context_tokens - 1 - i);
  for (int64_t i = head_tokens; i < std::min(first, context_tokens - last); ++i) {
    result.order.push_back(i);
  }
  result.first_scored = first;
  result.scored = std::max<int64_t>(0, context_tokens - last - first);
  return result;
}

std::vector<at::Tensor> SelectPerHead(const Protection& protection, const at::Tensor& scores,
                                      int64_t kv_heads, int64_t n) {
  const at::Tensor fixed = FirstProtected(protection, n);
  at::Tensor kept = fixed.expand({kv_heads, fixed.size(0)});
  const int64_t scored = n - fixed.size(0);
  if (scored > 0) {
    const at::Tensor best = scores.argsort(/*stable=*/true, /*dim=*/-1, /*descending=*/true);
    kept =
        at::cat({kept.to(scores.device()), best.narrow(1, 0, scored) + protection.first_scored}, 1);
  }
  return std::get<0>(kept.sort(/*dim=*/-1)).unbind(0);
}

std::vector<at::Tensor> SelectOverHeads(const Protection& protection, const at::Tensor& scores,
                                        int64_t kv_heads, int64_t n) {
  const at::Tensor fixed = FirstProtected(protection, n);
  const int64_t scored = n - fixed.size(0);
  if (scored == 0) return SelectPerHead(protection, scores, kv_heads, n);
  const at::Tensor best =
      scores.t().flatten().argsort(/*stable=*/true, /*dim=*/-1, /*descending=*/true);
  const at::Tensor pairs = best.narrow(0, 0, kv_heads * scored).cpu();  // position · G + head
  const at::Tensor heads = pairs.remainder(kv_heads);
  const at::Tensor positions =
      pairs.div(kv_heads, /*rounding_mode=*/"floor") + protection.first_scored;
  std::vector<at::Tensor> kept;
  for (int64_t head = 0; head < kv_heads; ++head) {
    const at::Tensor own = positions.masked_select(heads == head);
    kept.push_back(std::get<0>(at::cat({fixed, own}).sort()));
  }
  return kept;
}

}  // namespace docmem::engine
