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

/// Positions that are kept, [G, n] int64, ascending in every KV head: the first `n` of the
/// protected ones, then those with the best scores, of equal scores the lower position. scores [G,
/// M] fp32, finite; not looked at (and may be undefined) while n ≤ the number of protected
/// positions. `kv_heads` is G.
at::Tensor SelectKept(const Protection& protection, const at::Tensor& scores, int64_t kv_heads,
                      int64_t n);

}  // namespace docmem::engine
