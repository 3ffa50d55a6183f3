#include "engine/fused_step.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/model/tensor_matrix.h"

namespace docmem::engine {
namespace {

constexpr int64_t kItemRows = 16;

// Calls visit(item) for this worker's items, in turn with the other workers.
template <typename Items, typename Visit>
void ForMine(const Items& items, const Worker& worker, const Visit& visit) {
  const auto stride = static_cast<size_t>(worker.count);
  for (auto i = static_cast<size_t>(worker.index); i < items.size(); i += stride) visit(items[i]);
}

}  // namespace

FusedStep::FusedStep(const KernelTable& kernels, const ModelConfig& config,
                     std::span<const BatchSlice> slices, const Rotation& rotation,
                     const at::TensorOptions& options)
    : kernels_(kernels),
      dim_(config.head_dim),
      q_width_(config.query_heads * config.head_dim),
      kv_width_(config.kv_heads * config.head_dim),
      repeat_(config.query_heads / config.kv_heads),
      cosine_(rotation.cosine.const_data_ptr<float>()),
      sine_(rotation.sine.const_data_ptr<float>()) {
  int64_t rows = 0;
  for (const BatchSlice& slice : slices) {
    rows += slice.rows;
    for (int64_t head = 0; head < config.kv_heads; ++head) {
      writes_.push_back({&slice, head, 0, slice.rows});
      for (int64_t row = 0; row < slice.rows; row += kItemRows) {
        items_.push_back({&slice, head, row, std::min(kItemRows, slice.rows - row)});
      }
    }
  }
  rotated_ = at::empty({rows, q_width_}, options);
  queries_ = MatrixOf(rotated_);
}

void FusedStep::Attend(const Worker& worker, int64_t layer, const Matrix& qkv,
                       const Matrix& attended) const {
  const Matrix keys = qkv.Columns(q_width_, kv_width_);
  const Matrix values = qkv.Columns(q_width_ + kv_width_, kv_width_);
  ForMine(writes_, worker, [&](const Item& item) { Write(item, layer, keys, values); });
  const auto [first, count] = worker.Share(qkv.rows);
  RotateTo(qkv.Columns(0, q_width_).Rows(first, count), first, queries_.Rows(first, count));
  Worker::Barrier();
  ForMine(items_, worker, [&](const Item& item) { AttendItem(item, layer, attended); });
}

void FusedStep::RotateTo(const Matrix& from, int64_t row, const Matrix& to) const {
  kernels_.rotate(from, dim_, cosine_ + row * dim_ / 2, sine_ + row * dim_ / 2, to);
}

void FusedStep::Write(const Item& item, int64_t layer, const Matrix& keys,
                      const Matrix& values) const {
  const BatchSlice& slice = *item.slice;
  const auto column = [&](const Matrix& all) {
    return all.Columns(item.head * dim_, dim_).Rows(slice.first_row, slice.rows);
  };
  const OwnKv::NextRows next = slice.sequence->own_kv().Next(layer, item.head, slice.rows);
  RotateTo(column(keys), slice.first_row, next.keys);
  const Matrix from = column(values);
  for (int64_t row = 0; row < slice.rows; ++row) {
    std::memcpy(next.values.Row(row), from.Row(row),
                static_cast<size_t>(dim_) * BytesOf(from.type));
  }
}

void FusedStep::AttendItem(const Item& item, int64_t layer, const Matrix& attended) const {
  const Sequence& sequence = *item.slice->sequence;
  const OwnKv& own = sequence.own_kv();
  const int64_t row = item.slice->first_row + item.first_row;
  const int64_t width = repeat_ * dim_;
  kernels_.attend({.q = queries_.Rows(row, item.rows).Columns(item.head * width, width),
                   .out = attended.Rows(row, item.rows).Columns(item.head * width, width),
                   .repeat = repeat_,
                   .dim = dim_,
                   .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim_))),
                   .cached = sequence.request().cache->HeadSpan(layer, item.head),
                   .own = own.HeadSpan(layer, item.head, own.length() + item.slice->rows),
                   .own_offset = own.length() + item.first_row});
}

}  // namespace docmem::engine
