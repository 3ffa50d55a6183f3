#include "engine/step_attention.h"

#include <ATen/ATen.h>

#include <limits>
#include <utility>
#include <vector>

#include "engine/model/attention.h"

namespace docmem::engine {
namespace {

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

// All rows [T, H, D] over the document's tokens. Heads that keep different numbers go one by one,
// as do int8 ones: `Head` gives them as numbers, of which a copy of one head lives at a time.
AttentionPart AttendShared(int64_t layer, const Cache& cache, const at::Tensor& q) {
  if (!cache.Ragged(layer) && !cache.quantised()) {
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
