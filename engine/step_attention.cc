#include "engine/step_attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "engine/kernels/parallel.h"
#include "engine/model/attention.h"
#include "engine/model/fused_layers.h"
#include "engine/model/tensor_matrix.h"

namespace docmem::engine {
namespace {

// ---- kernels on the CPU -------------------------------------------------------------------------

constexpr int64_t kItemRows = 16;

// Some rows of one slice under one KV head.
struct Item {
  const BatchSlice* slice = nullptr;
  int64_t head = 0;
  int64_t first_row = 0;  // in the slice
  int64_t rows = 0;
};

class FusedStep {
 public:
  FusedStep(const KernelTable& kernels, int64_t layer, const Qkv& qkv, const Rotation& rotation)
      : kernels_(kernels),
        layer_(layer),
        dim_(qkv.q.size(2)),
        repeat_(qkv.q.size(1) / qkv.k.size(1)),
        q_(MatrixOf(qkv.q)),
        k_(MatrixOf(qkv.k)),
        v_(MatrixOf(qkv.v)),
        cosine_(rotation.cosine.const_data_ptr<float>()),
        sine_(rotation.sine.const_data_ptr<float>()),
        out_(at::empty(qkv.q.sizes(), qkv.q.options())),
        rotated_(at::empty(qkv.q.sizes(), qkv.q.options())) {}

  at::Tensor Run(std::span<const BatchSlice> slices, int64_t heads) const {
    std::vector<Item> writes, items;
    for (const BatchSlice& slice : slices) {
      for (int64_t head = 0; head < heads; ++head) {
        writes.push_back({&slice, head, 0, slice.rows});
        for (int64_t row = 0; row < slice.rows; row += kItemRows) {
          items.push_back({&slice, head, row, std::min(kItemRows, slice.rows - row)});
        }
      }
    }
    OnAllWorkers([&](const Worker& worker) {
      const auto mine = [&worker](const std::vector<Item>& all, const auto& visit) {
        for (size_t i = static_cast<size_t>(worker.index); i < all.size();
             i += static_cast<size_t>(worker.count)) {
          visit(all[i]);
        }
      };
      mine(writes, [this](const Item& item) { Write(item); });
      const auto [first, count] = worker.Share(q_.rows);
      RotateTo(q_.Rows(first, count), first, MatrixOf(rotated_).Rows(first, count));
      Worker::Barrier();
      mine(items, [this](const Item& item) { Attend(item); });
    });
    return out_;
  }

 private:
  void RotateTo(const Matrix& from, int64_t row, const Matrix& to) const {
    kernels_.rotate(from, dim_, cosine_ + row * dim_ / 2, sine_ + row * dim_ / 2, to);
  }

  void Write(const Item& item) const {
    const BatchSlice& slice = *item.slice;
    const OwnKv& own = slice.sequence->own_kv();
    const LayerKv kv = own.Rows(layer_, own.length() + slice.rows);
    const auto place = [&](const at::Tensor& all) {
      const at::Tensor rows = all.select(0, item.head);
      return MatrixOf(rows).Rows(own.length(), slice.rows);
    };
    const auto column = [&](const Matrix& all) {
      return all.Columns(item.head * dim_, dim_).Rows(slice.first_row, slice.rows);
    };
    RotateTo(column(k_), slice.first_row, place(kv.keys));
    const Matrix from = column(v_), to = place(kv.values);
    for (int64_t row = 0; row < slice.rows; ++row) {
      std::memcpy(to.Row(row), from.Row(row), static_cast<size_t>(dim_) * BytesOf(to.type));
    }
  }

  void Attend(const Item& item) const {
    const OwnKv& own = item.slice->sequence->own_kv();
    const int64_t row = item.slice->first_row + item.first_row;
    const int64_t width = repeat_ * dim_;
    kernels_.attend({.q = MatrixOf(rotated_).Rows(row, item.rows).Columns(item.head * width, width),
                     .out = MatrixOf(out_).Rows(row, item.rows).Columns(item.head * width, width),
                     .repeat = repeat_,
                     .dim = dim_,
                     .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim_))),
                     .cached = item.slice->sequence->request().cache->HeadSpan(layer_, item.head),
                     .own = own.HeadSpan(layer_, item.head, own.length() + item.slice->rows),
                     .own_offset = own.length() + item.first_row});
  }

  const KernelTable& kernels_;
  int64_t layer_, dim_, repeat_;
  Matrix q_, k_, v_;
  const float* cosine_;
  const float* sine_;
  at::Tensor out_, rotated_;
};

// ---- plain operators ----------------------------------------------------------------------------

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Consecutive slices on one cache.
struct CacheGroup {
  const Cache* cache = nullptr;
  std::span<const BatchSlice> slices;
  int64_t first_row = 0;
  int64_t rows = 0;
};

std::vector<CacheGroup> GroupByCache(std::span<const BatchSlice> slices) {
  std::vector<CacheGroup> groups;
  for (size_t i = 0; i < slices.size(); ++i) {
    const Cache* cache = slices[i].sequence->request().cache.get();
    if (groups.empty() || groups.back().cache != cache) {
      groups.push_back(
          {.cache = cache, .slices = slices.subspan(i, 0), .first_row = slices[i].first_row});
    }
    CacheGroup& group = groups.back();
    group.slices = {group.slices.data(), group.slices.size() + 1};
    group.rows += slices[i].rows;
  }
  return groups;
}

at::Tensor Concatenate(std::vector<at::Tensor> tensors) {
  return tensors.size() == 1 ? tensors.front() : at::cat(tensors);
}

// A sequence's rows over its own tokens. A single row sees all of them.
AttentionPart AttendOwn(int64_t layer, const BatchSlice& slice, const at::Tensor& q) {
  const OwnKv& own = slice.sequence->own_kv();
  const LayerKv kv = own.Rows(layer, own.length() + slice.rows);
  const at::Tensor rows = q.narrow(0, slice.first_row, slice.rows);
  return slice.rows == 1 ? AttendAll(rows, kv.keys, kv.values)
                         : AttendCausal(rows, kv.keys, kv.values, own.length());
}

// All rows [T, H, D] over the document's tokens; heads that keep different numbers one by one.
AttentionPart AttendShared(int64_t layer, const Cache& cache, const at::Tensor& q) {
  if (!cache.Ragged(layer)) {
    const LayerKv kv = cache.Layer(layer);
    return AttendAll(q, kv.keys, kv.values);
  }
  const int64_t repeat = q.size(1) / cache.kv_heads();
  AttentionPart part = {
      .out = at::zeros_like(q),
      .lse = at::full({q.size(0), q.size(1)}, -kInfinity, q.options().dtype(at::kFloat))};
  for (int64_t head = 0; head < cache.kv_heads(); ++head) {
    const HeadKv kv = cache.Head(layer, head);
    if (kv.keys.size(0) == 0) {
      continue;
    }
    const AttentionPart own =
        AttendAll(q.narrow(1, head * repeat, repeat), kv.keys.unsqueeze(0).to(q.scalar_type()),
                  kv.values.unsqueeze(0).to(q.scalar_type()));
    part.out.narrow(1, head * repeat, repeat).copy_(own.out);
    part.lse.narrow(1, head * repeat, repeat).copy_(own.lse);
  }
  return part;
}

// All rows on one cache: each over its own tokens, all together over the document's.
at::Tensor AttendGroup(int64_t layer, const CacheGroup& group, const at::Tensor& q) {
  std::vector<at::Tensor> out;
  std::vector<at::Tensor> lse;
  for (const BatchSlice& slice : group.slices) {
    const AttentionPart part = AttendOwn(layer, slice, q);
    out.push_back(part.out);
    lse.push_back(part.lse);
  }
  const AttentionPart own = {Concatenate(std::move(out)), Concatenate(std::move(lse))};
  const std::span<const int64_t> offsets = group.cache->LayerOffsets(layer);
  if (offsets.front() == offsets.back()) {
    return own.out;
  }
  const at::Tensor rows = q.narrow(0, group.first_row, group.rows);
  const AttentionPart parts[] = {AttendShared(layer, *group.cache, rows), own};
  return JoinParts(parts);
}

}  // namespace

at::Tensor AttendStep(const Transformer& model, int64_t layer, std::span<const BatchSlice> slices,
                      const Qkv& qkv, const Rotation& rotation) {
  if (const FusedLayers* fused = model.fused()) {
    return FusedStep(fused->kernels(), layer, qkv, rotation).Run(slices, model.config().kv_heads);
  }
  const at::Tensor q = model.Rotate(qkv.q, rotation), k = model.Rotate(qkv.k, rotation);
  for (const BatchSlice& slice : slices) {
    slice.sequence->own_kv().Write(layer, k.narrow(0, slice.first_row, slice.rows),
                                   qkv.v.narrow(0, slice.first_row, slice.rows));
  }
  std::vector<at::Tensor> attended;
  for (const CacheGroup& group : GroupByCache(slices)) {
    attended.push_back(AttendGroup(layer, group, q));
  }
  return Concatenate(std::move(attended));
}

}  // namespace docmem::engine
