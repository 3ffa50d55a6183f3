#include "engine/own_kv.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "engine/model/tensor_matrix.h"

namespace docmem::engine {
namespace {

constexpr int64_t kBlockRows = 64;

int64_t RoundUp(int64_t rows) { return (rows + kBlockRows - 1) / kBlockRows * kBlockRows; }

}  // namespace

int64_t OwnKv::MostCapacity(int64_t most_rows) { return RoundUp(most_rows); }

OwnKv::OwnKv(const ModelConfig& config, const at::TensorOptions& options, int64_t most_rows)
    : layers_(static_cast<size_t>(config.layers)), most_capacity_(MostCapacity(most_rows)) {
  for (LayerKv& layer : layers_) {
    layer.keys = at::empty({config.kv_heads, 0, config.head_dim}, options);
    layer.values = at::empty({config.kv_heads, 0, config.head_dim}, options);
  }
}

void OwnKv::Reserve(int64_t rows) {
  if (rows <= capacity_) {
    return;
  }
  capacity_ = std::max(RoundUp(rows), std::min(RoundUp(capacity_ + capacity_ / 2), most_capacity_));
  const auto grow = [this](at::Tensor& tensor) {
    at::Tensor grown = at::empty({tensor.size(0), capacity_, tensor.size(2)}, tensor.options());
    grown.narrow(1, 0, length_).copy_(tensor.narrow(1, 0, length_));
    tensor = grown;
  };
  for (LayerKv& layer : layers_) {
    grow(layer.keys);
    grow(layer.values);
  }
}

void OwnKv::Write(int64_t layer, const at::Tensor& keys, const at::Tensor& values) {
  const LayerKv& target = layers_[static_cast<size_t>(layer)];
  const int64_t rows = keys.size(0);
  target.keys.narrow(1, length_, rows).copy_(keys.transpose(0, 1));
  target.values.narrow(1, length_, rows).copy_(values.transpose(0, 1));
}

LayerKv OwnKv::Rows(int64_t layer, int64_t rows) const {
  const LayerKv& all = layers_[static_cast<size_t>(layer)];
  return {.keys = all.keys.narrow(1, 0, rows), .values = all.values.narrow(1, 0, rows)};
}

KvSpan OwnKv::HeadSpan(int64_t layer, int64_t head, int64_t rows) const {
  const LayerKv& all = layers_[static_cast<size_t>(layer)];
  const int64_t first = head * all.keys.stride(0);
  const auto at = [first](const at::Tensor& tensor) {
    return static_cast<const std::byte*>(tensor.const_data_ptr()) +
           static_cast<size_t>(first) * tensor.element_size();
  };
  return {
      .keys = at(all.keys), .values = at(all.values), .rows = rows, .type = NumberTypeOf(all.keys)};
}

OwnKv::NextRows OwnKv::Next(int64_t layer, int64_t head, int64_t rows) {
  LayerKv& all = layers_[static_cast<size_t>(layer)];
  const int64_t dim = all.keys.size(2);
  const auto behind = [&](at::Tensor& tensor) {
    const int64_t first = head * tensor.stride(0) + length_ * dim;
    auto* data = static_cast<std::byte*>(tensor.mutable_data_ptr());
    return Matrix{data + static_cast<size_t>(first) * tensor.element_size(), NumberTypeOf(tensor),
                  rows, dim, dim};
  };
  return {.keys = behind(all.keys), .values = behind(all.values)};
}

uint64_t OwnKv::bytes() const {
  uint64_t bytes = 0;
  for (const LayerKv& layer : layers_) {
    bytes += layer.keys.nbytes() + layer.values.nbytes();
  }
  return bytes;
}

}  // namespace docmem::engine
