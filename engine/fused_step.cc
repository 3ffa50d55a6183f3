#include "engine/fused_step.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "engine/model/tensor_matrix.h"

namespace docmem::engine {
namespace {

constexpr int64_t kItemRows = 16;
constexpr int64_t kItemsPerWorker = 4;  // enough for even shares

int64_t RowsOf(std::span<const BatchSlice> slices) {
  return slices.back().first_row + slices.back().rows - slices.front().first_row;
}

// How many of the first slices are on the first one's cache.
size_t GroupSize(std::span<const BatchSlice> slices) {
  const auto cache = [](const BatchSlice& slice) { return slice.sequence->request().cache.get(); };
  const auto end = std::ranges::find_if(
      slices, [&](const BatchSlice& slice) { return cache(slice) != cache(slices.front()); });
  return static_cast<size_t>(end - slices.begin());
}

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
      kv_heads_(config.kv_heads),
      repeat_(config.query_heads / config.kv_heads),
      cosine_(rotation.cosine.const_data_ptr<float>()),
      sine_(rotation.sine.const_data_ptr<float>()) {
  const int64_t rows = RowsOf(slices);
  const int64_t item_rows = std::clamp(rows * kv_heads_ / (kItemsPerWorker * at::get_num_threads()),
                                       int64_t{1}, kItemRows);
  while (!slices.empty()) {
    const size_t group = GroupSize(slices);
    PlanGroup(slices.first(group), item_rows);
    slices = slices.subspan(group);
  }
  rotated_ = at::empty({rows, q_width_}, options);
  queries_ = MatrixOf(rotated_);
}

void FusedStep::PlanGroup(std::span<const BatchSlice> slices, int64_t item_rows) {
  const int64_t rows = RowsOf(slices), items = (rows + item_rows - 1) / item_rows;
  for (int64_t head = 0; head < kv_heads_; ++head) {
    for (const BatchSlice& slice : slices) writes_.push_back({&slice, head});
    for (int64_t item = 0; item < items; ++item) {
      const int64_t first = rows * item / items, end = rows * (item + 1) / items;
      items_.push_back({slices, head, slices.front().first_row + first, end - first});
    }
  }
}

void FusedStep::Attend(const Worker& worker, int64_t layer, const Matrix& qkv,
                       const Matrix& attended) const {
  const Matrix keys = qkv.Columns(q_width_, kv_width_);
  const Matrix values = qkv.Columns(q_width_ + kv_width_, kv_width_);
  ForMine(writes_, worker, [&](const Write& write) { WriteOwn(write, layer, keys, values); });
  const auto [first, count] = worker.Share(qkv.rows);
  RotateTo(qkv.Columns(0, q_width_).Rows(first, count), first, queries_.Rows(first, count));
  Worker::Barrier();
  ForMine(items_, worker, [&](const Item& item) { AttendItem(item, layer, attended); });
}

void FusedStep::RotateTo(const Matrix& from, int64_t row, const Matrix& to) const {
  kernels_.rotate(from, dim_, cosine_ + row * dim_ / 2, sine_ + row * dim_ / 2, to);
}

void FusedStep::WriteOwn(const Write& write, int64_t layer, const Matrix& keys,
                         const Matrix& values) const {
  const BatchSlice& slice = *write.slice;
  const auto column = [&](const Matrix& all) {
    return all.Columns(write.head * dim_, dim_).Rows(slice.first_row, slice.rows);
  };
  const OwnKv::NextRows next = slice.sequence->own_kv().Next(layer, write.head, slice.rows);
  RotateTo(column(keys), slice.first_row, next.keys);
  const Matrix from = column(values);
  for (int64_t row = 0; row < slice.rows; ++row) {
    std::memcpy(next.values.Row(row), from.Row(row),
                static_cast<size_t>(dim_) * BytesOf(from.type));
  }
}

void FusedStep::AttendItem(const Item& item, int64_t layer, const Matrix& attended) const {
  std::array<OwnRows, kItemRows> own;
  int64_t sequences = 0;
  for (const BatchSlice& slice : item.slices) {
    const int64_t first = std::max(item.first_row - slice.first_row, int64_t{0});
    const int64_t end = std::min(item.first_row + item.rows - slice.first_row, slice.rows);
    if (first >= end) continue;
    const OwnKv& kv = slice.sequence->own_kv();
    own[static_cast<size_t>(sequences++)] = {
        .kv = kv.HeadSpan(layer, item.head, kv.length() + slice.rows),
        .queries = end - first,
        .offset = kv.length() + first};
  }
  const int64_t width = repeat_ * dim_;
  const auto columns = [&](const Matrix& rows) {
    return rows.Rows(item.first_row, item.rows).Columns(item.head * width, width);
  };
  const Cache& cache = *item.slices.front().sequence->request().cache;
  kernels_.attend({.q = columns(queries_),
                   .out = columns(attended),
                   .repeat = repeat_,
                   .dim = dim_,
                   .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim_))),
                   .cached = cache.HeadSpan(layer, item.head),
                   .own = own.data(),
                   .sequences = sequences});
}

}  // namespace docmem::engine
