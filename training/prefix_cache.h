#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "engine/compression/prefill.h"
#include "engine/model/transformer.h"

namespace docmem::training {

/// Keys and values of a prefix, written by the base model; rows as serving writes them. Usable in
/// backward passes.
struct PrefixKv {
  at::Tensor keys;    ///< [L, G, p, D] after RoPE at the positions 0 … p − 1
  at::Tensor values;  ///< [L, G, p, D]
};

/// Prefixes that examples share, so that each is computed once as long as they fit the budget. What
/// has come first stays: examples come in another order in every epoch, and dropping the oldest
/// would then drop what is needed next. One thread.
class PrefixCache {
 public:
  /// The model must outlive the cache. `budget_bytes` bounds what is remembered; a prefix beyond it
  /// is given away and forgotten.
  PrefixCache(const engine::Transformer& model, uint64_t budget_bytes);

  /// The prefix of these ids, or null when it isn't remembered.
  std::shared_ptr<const PrefixKv> Find(const std::vector<int32_t>& ids) const;

  /// Computes the prefix of `ids` (not empty) in units of work: one per call, null until the last.
  /// Calls with other ids in between start anew.
  std::shared_ptr<const PrefixKv> Step(const std::vector<int32_t>& ids);

  uint64_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<const PrefixKv> Keep(std::shared_ptr<const PrefixKv> prefix);

  const engine::Transformer& model_;
  uint64_t budget_bytes_;
  uint64_t bytes_ = 0;
  std::map<std::vector<int32_t>, std::shared_ptr<const PrefixKv>> prefixes_;
  std::vector<int32_t> ids_;  // of `prefill_`
  std::unique_ptr<engine::Prefill> prefill_;
};

}  // namespace docmem::training
