#include "engine/model/transformer.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <utility>

#include "engine/model/attention.h"
#include "engine/model/fused_layers.h"

namespace docmem::engine {
namespace {

// Normalises in fp32 and multiplies the weight in the compute dtype, as transformers does.
at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor variance = wide.pow(2).mean(-1, /*keepdim=*/true);
  return weight * (wide * at::rsqrt(variance + eps)).to(x.scalar_type());
}

void AddLora(const LoraPair& pair, const AdapterSpan& span, const at::Tensor& x, at::Tensor* y) {
  at::Tensor rows = x.narrow(0, span.first_row, span.rows);
  if (pair.mask.defined()) rows = rows * pair.mask;
  const at::Tensor update = at::linear(at::linear(rows, pair.a), pair.b);
  if (span.rows == x.size(0)) {
    *y = at::add(*y, update, pair.scale);  // a change in place of a part costs the graph dearly
  } else {
    y->narrow(0, span.first_row, span.rows).add_(update, pair.scale);
  }
}

// Queries, keys and values that lie side by side [T, (H + 2·G)·D]; views.
Qkv Split(const at::Tensor& qkv, const ModelConfig& config) {
  const int64_t dim = config.head_dim;
  const auto heads = [&](int64_t first, int64_t count) {
    return qkv.narrow(1, first * dim, count * dim).unflatten(1, {count, dim});
  };
  return {heads(0, config.query_heads), heads(config.query_heads, config.kv_heads),
          heads(config.query_heads + config.kv_heads, config.kv_heads)};
}

}  // namespace

Transformer::Transformer(ModelConfig config, Weights weights, const KernelOptions& options)
    : config_(std::make_unique<const ModelConfig>(std::move(config))),
      weights_(std::move(weights)),
      rope_(config_->rope, config_->head_dim, weights_.embedding.device()) {
  if (device().is_cpu()) {
    fused_ = std::make_unique<const FusedLayers>(*config_, weights_, options);
  }
}
Transformer::~Transformer() = default;
Transformer::Transformer(Transformer&&) noexcept = default;

const FusedLayers* Transformer::fused() const {
  return c10::InferenceMode::is_enabled() ? fused_.get() : nullptr;
}

at::ScalarType Transformer::dtype() const { return weights_.embedding.scalar_type(); }
at::Device Transformer::device() const { return weights_.embedding.device(); }
uint64_t Transformer::parameters() const { return weights_.count(); }
uint64_t Transformer::weight_bytes() const {
  return weights_.owned_bytes + (fused_ ? fused_->bytes() : 0);
}

at::Tensor Transformer::Linear(int64_t layer, Module module, const at::Tensor& x,
                               std::span<const AdapterSpan> adapters) const {
  const LayerWeights& weights = weights_.layers[static_cast<size_t>(layer)];
  const size_t index = static_cast<size_t>(module);
  at::Tensor y = at::linear(x, weights.matrix[index], weights.bias[index]);
  for (const AdapterSpan& span : adapters) {
    if (span.adapter == nullptr || span.rows == 0) continue;
    const LoraPair& pair = span.adapter->At(layer, module);
    if (pair.defined()) AddLora(pair, span, x, &y);
  }
  return y;
}

at::Tensor Transformer::Embed(const at::Tensor& ids) const {
  return at::embedding(weights_.embedding, ids);
}

Qkv Transformer::Project(int64_t layer, const at::Tensor& hidden,
                         std::span<const AdapterSpan> adapters) const {
  if (const FusedLayers* kernels = fused()) {
    return Split(kernels->Project(layer, hidden, adapters), *config_);
  }
  const LayerWeights& weights = weights_.layers[static_cast<size_t>(layer)];
  const at::Tensor x = RmsNorm(hidden, weights.input_norm, config_->rms_norm_eps);
  const int64_t rows = hidden.size(0);
  const auto heads = [&](Module module, int64_t count) {
    return Linear(layer, module, x, adapters).view({rows, count, config_->head_dim});
  };
  Qkv qkv{heads(Module::kQ, config_->query_heads), heads(Module::kK, config_->kv_heads),
          heads(Module::kV, config_->kv_heads)};
  if (config_->qk_norm) {
    qkv.q = RmsNorm(qkv.q, weights.q_norm, config_->rms_norm_eps);
    qkv.k = RmsNorm(qkv.k, weights.k_norm, config_->rms_norm_eps);
  }
  return qkv;
}

at::Tensor Transformer::Rotate(const at::Tensor& x, const Rotation& rotation) const {
  const FusedLayers* kernels = fused();
  return kernels != nullptr ? kernels->Rotate(x, rotation.cosine, rotation.sine)
                            : RopeTable::Rotate(x, rotation);
}

at::Tensor Transformer::Attend(const at::Tensor& q, const at::Tensor& keys,
                               const at::Tensor& values, int64_t offset) const {
  if (const FusedLayers* kernels = fused()) {
    const at::Tensor out = kernels->AttendCausal(q, keys, values, offset);
    if (out.defined()) return out;
  }
  return AttendCausal(q, keys, values, offset).out;
}

at::Tensor Transformer::Finish(int64_t layer, const at::Tensor& hidden, const at::Tensor& attended,
                               std::span<const AdapterSpan> adapters) const {
  if (const FusedLayers* kernels = fused()) {
    return kernels->Finish(layer, hidden, attended.flatten(1), adapters);
  }
  const LayerWeights& weights = weights_.layers[static_cast<size_t>(layer)];
  const at::Tensor residual = hidden + Linear(layer, Module::kO, attended.flatten(1), adapters);
  const at::Tensor x = RmsNorm(residual, weights.post_attention_norm, config_->rms_norm_eps);
  const at::Tensor gate = at::silu(Linear(layer, Module::kGate, x, adapters));
  const at::Tensor up = Linear(layer, Module::kUp, x, adapters);
  return residual + Linear(layer, Module::kDown, gate * up, adapters);
}

at::Tensor Transformer::Logits(const at::Tensor& hidden) const {
  if (const FusedLayers* kernels = fused()) return kernels->Logits(hidden);
  const at::Tensor x = RmsNorm(hidden, weights_.final_norm, config_->rms_norm_eps);
  return at::linear(x, weights_.head).to(at::kFloat);
}

}  // namespace docmem::engine
