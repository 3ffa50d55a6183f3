#include "training/prefix_cache.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <utility>

namespace docmem::training {

PrefixCache::PrefixCache(const engine::Transformer& model, uint64_t budget_bytes)
    : model_(model), budget_bytes_(budget_bytes) {}

std::shared_ptr<const PrefixKv> PrefixCache::Find(const std::vector<int32_t>& ids) const {
  const auto found = prefixes_.find(ids);
  return found == prefixes_.end() ? nullptr : found->second;
}

std::shared_ptr<const PrefixKv> PrefixCache::Step(const std::vector<int32_t>& ids) {
  engine::KeptRows rows;
  {
    const c10::InferenceMode inference;
    if (prefill_ == nullptr || ids_ != ids) {
      ids_ = ids;
      prefill_ = std::make_unique<engine::Prefill>(
          model_, engine::PrefillOptions{.context_ids = {ids.begin(), ids.end()},
                                         .head_tokens = static_cast<int64_t>(ids.size()),
                                         .compressions = {{.ratio_ppm = 0}}});
    }
    if (!prefill_->Step()) return nullptr;
    rows = prefill_->TakeResults().front();
    prefill_.reset();
  }
  const engine::ModelConfig& config = model_.config();
  const std::vector<int64_t> shape = {config.layers, config.kv_heads,
                                      static_cast<int64_t>(ids.size()), config.head_dim};
  // Tensors of inference mode can't be saved for a backward pass, their copies can.
  return Keep(std::make_shared<const PrefixKv>(
      PrefixKv{.keys = rows.keys.clone().view(shape), .values = rows.values.clone().view(shape)}));
}

std::shared_ptr<const PrefixKv> PrefixCache::Keep(std::shared_ptr<const PrefixKv> prefix) {
  const uint64_t bytes = prefix->keys.nbytes() + prefix->values.nbytes();
  if (bytes_ + bytes <= budget_bytes_) {
    prefixes_[ids_] = prefix;
    bytes_ += bytes;
  }
  return prefix;
}

}  // namespace docmem::training
