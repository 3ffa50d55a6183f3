#include "engine/artifacts/cache.h"

#include <ATen/ATen.h>

#include <span>
#include <utility>

#include "engine/formats/error.h"
#include "engine/model/tensor_matrix.h"

namespace docmem::engine {
namespace {

std::span<const int64_t> Offsets(const KeptRows& rows) {
  return {static_cast<const int64_t*>(rows.offsets.const_data_ptr()),
          static_cast<size_t>(rows.offsets.numel())};
}

void Require(bool fits, const char* section, const char* message) {
  if (!fits) {
    ThrowInternal(section, message);
  }
}

void CheckShapes(const KeptRows& rows, int64_t heads) {
  Require(rows.keys.dim() == 2 && rows.keys.size(1) > 0, "keys", "must have the shape [N, D]");
  Require(rows.values.sizes() == rows.keys.sizes(), "values", "must have the keys' shape");
  Require(rows.values.scalar_type() == rows.keys.scalar_type(), "values",
          "must have the keys' dtype");
  Require(rows.positions.dim() == 1 && rows.positions.size(0) == rows.keys.size(0) &&
              rows.positions.scalar_type() == at::kInt,
          "positions", "must be one int32 per row");
  Require(rows.offsets.dim() == 1 && rows.offsets.size(0) == heads + 1 &&
              rows.offsets.scalar_type() == at::kLong,
          "offsets", "must be one int64 per layer and head, and one more");
}

void CheckScales(const KeptRows& rows, int64_t heads) {
  const bool int8 = rows.keys.scalar_type() == at::kChar;
  const auto fits = [int8](const at::Tensor& scales, at::IntArrayRef shape) {
    if (!int8) return !scales.defined();
    return scales.defined() && scales.scalar_type() == at::kFloat && scales.sizes() == shape;
  };
  Require(fits(rows.key_scales, {heads, rows.keys.size(1)}), "key_scales",
          "must be one fp32 per layer, head and channel of int8 keys, and nothing else");
  Require(fits(rows.value_scales, {rows.keys.size(0)}), "value_scales",
          "must be one fp32 per row of int8 values, and nothing else");
}

void CheckOffsets(const KeptRows& rows) {
  const std::span<const int64_t> offsets = Offsets(rows);
  bool rising = offsets.front() == 0 && offsets.back() == rows.keys.size(0);
  for (size_t i = 1; i < offsets.size(); ++i) {
    rising = rising && offsets[i - 1] <= offsets[i];
  }
  Require(rising, "offsets", "must rise from 0 to the number of rows");
}

void CheckPositions(const KeptRows& rows, int64_t context_tokens) {
  const std::span<const int64_t> offsets = Offsets(rows);
  const int32_t* positions = static_cast<const int32_t*>(rows.positions.const_data_ptr());
  for (size_t head = 0; head + 1 < offsets.size(); ++head) {
    int64_t least = 0;
    for (int64_t row = offsets[head]; row < offsets[head + 1]; ++row) {
      Require(positions[row] >= least && positions[row] < context_tokens, "positions",
              "must rise inside a head and lie inside the context");
      least = int64_t{positions[row]} + 1;
    }
  }
}

}  // namespace

Cache::Cache(CacheIdentity identity, int64_t layers, int64_t kv_heads, KeptRows rows)
    : identity_(std::move(identity)), layers_(layers), kv_heads_(kv_heads), rows_(std::move(rows)) {
  Require(layers > 0 && kv_heads > 0, "offsets", "must cover at least one layer and head");
  CheckShapes(rows_, layers * kv_heads);
  CheckScales(rows_, layers * kv_heads);
  rows_.keys = rows_.keys.contiguous();
  rows_.values = rows_.values.contiguous();
  rows_.positions = rows_.positions.cpu().contiguous();
  rows_.offsets = rows_.offsets.cpu().contiguous();
  CheckOffsets(rows_);
  CheckPositions(rows_, identity_.context_tokens);
  const bool only_head = rows_.keys.size(0) == layers * kv_heads * identity_.head_tokens;
  next_position_ = only_head ? identity_.head_tokens : identity_.context_tokens;
}

std::span<const int64_t> Cache::LayerOffsets(int64_t layer) const {
  return Offsets(rows_).subspan(static_cast<size_t>(layer * kv_heads_),
                                static_cast<size_t>(kv_heads_) + 1);
}

bool Cache::Ragged(int64_t layer) const {
  const std::span<const int64_t> offsets = LayerOffsets(layer);
  for (size_t head = 2; head < offsets.size(); ++head) {
    if (offsets[head] - offsets[head - 1] != offsets[1] - offsets[0]) {
      return true;
    }
  }
  return false;
}

LayerKv Cache::Layer(int64_t layer) const {
  const std::span<const int64_t> offsets = LayerOffsets(layer);
  const int64_t n = offsets[1] - offsets[0], dim = rows_.keys.size(1);
  const auto view = [&](const at::Tensor& rows) {
    return rows.narrow(0, offsets.front(), kv_heads_ * n).view({kv_heads_, n, dim});
  };
  return {.keys = view(rows_.keys), .values = view(rows_.values)};
}

HeadKv Cache::Head(int64_t layer, int64_t head) const {
  const std::span<const int64_t> offsets = LayerOffsets(layer);
  const int64_t first = offsets[static_cast<size_t>(head)];
  const int64_t count = offsets[static_cast<size_t>(head) + 1] - first;
  const HeadKv kv = {.keys = rows_.keys.narrow(0, first, count),
                     .values = rows_.values.narrow(0, first, count)};
  if (!quantised()) return kv;
  const at::Tensor scales = rows_.value_scales.narrow(0, first, count).unsqueeze(1);
  return {.keys = kv.keys.to(at::kFloat) * rows_.key_scales.select(0, layer * kv_heads_ + head),
          .values = kv.values.to(at::kFloat) * scales};
}

KvSpan Cache::HeadSpan(int64_t layer, int64_t head) const {
  const std::span<const int64_t> offsets = LayerOffsets(layer);
  const auto index = static_cast<size_t>(head);
  const auto first = static_cast<size_t>(offsets[index] * rows_.keys.size(1));
  const auto at = [first](const at::Tensor& rows) {
    return static_cast<const std::byte*>(rows.const_data_ptr()) + first * rows.element_size();
  };
  KvSpan span = {.keys = at(rows_.keys),
                 .values = at(rows_.values),
                 .rows = offsets[index + 1] - offsets[index],
                 .type = NumberTypeOf(rows_.keys)};
  if (quantised()) {
    const int64_t row = layer * kv_heads_ + head;
    span.key_scales =
        static_cast<const float*>(rows_.key_scales.const_data_ptr()) + row * rows_.keys.size(1);
    span.value_scales =
        static_cast<const float*>(rows_.value_scales.const_data_ptr()) + offsets[index];
  }
  return span;
}

int64_t Cache::kept_tokens() const { return rows_.keys.size(0) / (layers_ * kv_heads_); }

uint64_t Cache::bytes() const {
  const uint64_t scales = quantised() ? rows_.key_scales.nbytes() + rows_.value_scales.nbytes() : 0;
  return rows_.keys.nbytes() + rows_.values.nbytes() + rows_.positions.nbytes() +
         rows_.offsets.nbytes() + scales;
}

}  // namespace docmem::engine
