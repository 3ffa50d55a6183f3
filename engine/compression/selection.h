#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace docmem::engine {

/// Which tokens of a context are kept without being scored, and which are scored.
struct Protection {
  /// Protected positions, the one that is given up last first: the head; of the last tokens the
  /// latest first; the rest of the first tokens.
  std::vector<int64_t> order;
  /// The middle: the scored positions are first_scored … first_scored + scored − 1.
  int64_t first_scored = 0;
  int64_t scored = 0;  ///< M
};

/// Of a context of `context_tokens`, protects the head, the first max(head, `first_tokens`) and the
/// last `last_tokens`, as far as the context reaches.
Protection Protect(int64_t context_tokens, int64_t head_tokens, int64_t first_tokens,
                   int64_t last_tokens);

/// Chooses the positions of one layer that are kept: one int64 tensor [n_g] per KV head, ascending,
/// G·`n` positions in all. scores [G, M] fp32, finite; not looked at (and may be undefined) while
/// n ≤ the number of protected positions: then the first `n` of these are kept in every head.
/// `kv_heads` is G.
using Selector = std::vector<at::Tensor> (*)(const Protection& protection, const at::Tensor& scores,
                                             int64_t kv_heads, int64_t n);

/// Every head keeps `n`: the protected positions, then its own best scores; of equal scores the
/// lower position.
std::vector<at::Tensor> SelectPerHead(const Protection& protection, const at::Tensor& scores,
                                      int64_t kv_heads, int64_t n);

/// The protected positions in every head, then the best scores of all heads together; of equal
/// scores the lower position, then the lower head.
std::vector<at::Tensor> SelectOverHeads(const Protection& protection, const at::Tensor& scores,
                                        int64_t kv_heads, int64_t n);

}  // namespace docmem::engine
