#include "engine/compression/selection.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <tuple>

namespace docmem::engine {

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

at::Tensor SelectKept(const Protection& protection, const at::Tensor& scores, int64_t kv_heads,
                      int64_t n) {
  const int64_t fixed = std::min(n, static_cast<int64_t>(protection.order.size()));
  const at::Tensor positions =
      at::tensor(at::ArrayRef<int64_t>(protection.order.data(), static_cast<size_t>(fixed)),
                 at::TensorOptions(at::kLong));
  at::Tensor kept = positions.unsqueeze(0).expand({kv_heads, fixed});
  if (n > fixed) {
    const at::Tensor best = scores.argsort(/*stable=*/true, /*dim=*/-1, /*descending=*/true);
    kept = at::cat(
        {kept.to(scores.device()), best.narrow(1, 0, n - fixed) + protection.first_scored}, 1);
  }
  return std::get<0>(kept.sort(/*dim=*/-1));
}

}  // namespace docmem::engine
