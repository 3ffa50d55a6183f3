#include "engine/decode_step.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "engine/model/attention.h"

namespace docmem::engine {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kLogitRows = 64;  // bounds the memory of logits, which are wide

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

std::vector<AdapterSpan> AdapterSpans(std::span<const BatchSlice> slices) {
  std::vector<AdapterSpan> spans;
  for (const BatchSlice& slice : slices) {
    const int64_t base = slice.sequence->BaseRows(slice.rows);
    if (base == slice.rows) {
      continue;
    }
    const AdapterSpan span = {.adapter = &slice.sequence->request().adapter->weights(),
                              .first_row = slice.first_row + base,
                              .rows = slice.rows - base};
    const bool joins = !spans.empty() && spans.back().adapter == span.adapter &&
                       spans.back().first_row + spans.back().rows == span.first_row;
    if (joins) {
      spans.back().rows += span.rows;
    } else {
      spans.push_back(span);
    }
  }
  return spans;
}

at::Tensor Concatenate(std::vector<at::Tensor> tensors) {
  return tensors.size() == 1 ? tensors.front() : at::cat(tensors);
}

struct BatchInput {
  at::Tensor ids;        // [T] int64
  at::Tensor positions;  // [T] int64
};

BatchInput InputOf(std::span<const BatchSlice> slices, at::Device device) {
  std::vector<int64_t> ids;
  std::vector<int64_t> positions;
  for (const BatchSlice& slice : slices) {
    const auto waiting = slice.sequence->Waiting().first(static_cast<size_t>(slice.rows));
    ids.insert(ids.end(), waiting.begin(), waiting.end());
    for (int64_t row = 0; row < slice.rows; ++row) {
      positions.push_back(slice.sequence->next_position() + row);
    }
  }
  return {.ids = at::tensor(ids, at::kLong).to(device),
          .positions = at::tensor(positions, at::kLong).to(device)};
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
        AttendAll(q.narrow(1, head * repeat, repeat), kv.keys.unsqueeze(0), kv.values.unsqueeze(0));
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

void WriteOwn(int64_t layer, std::span<const BatchSlice> slices, const at::Tensor& k,
              const at::Tensor& v) {
  for (const BatchSlice& slice : slices) {
    slice.sequence->own_kv().Write(layer, k.narrow(0, slice.first_row, slice.rows),
                                   v.narrow(0, slice.first_row, slice.rows));
  }
}

at::Tensor Forward(const Transformer& model, std::span<const BatchSlice> slices) {
  const BatchInput input = InputOf(slices, model.device());
  const std::vector<AdapterSpan> adapters = AdapterSpans(slices);
  const std::vector<CacheGroup> groups = GroupByCache(slices);
  at::Tensor hidden = model.Embed(input.ids);
  for (int64_t layer = 0; layer < model.config().layers; ++layer) {
    const Qkv qkv = model.Project(layer, hidden, adapters);
    const at::Tensor q = model.Rotate(qkv.q, input.positions);
    WriteOwn(layer, slices, model.Rotate(qkv.k, input.positions), qkv.v);
    std::vector<at::Tensor> attended;
    for (const CacheGroup& group : groups) {
      attended.push_back(AttendGroup(layer, group, q));
    }
    hidden = model.Finish(layer, hidden, Concatenate(std::move(attended)), adapters);
  }
  return hidden;
}

at::Tensor WantedLogits(const Transformer& model, const at::Tensor& hidden,
                        const std::vector<int64_t>& rows) {
  std::vector<at::Tensor> logits = {at::empty({0, model.config().vocab_size}, at::kFloat)};
  const at::Tensor index = at::tensor(rows, at::kLong).to(model.device());
  for (int64_t first = 0; first < index.size(0); first += kLogitRows) {
    const int64_t count = std::min(kLogitRows, index.size(0) - first);
    logits.push_back(model.Logits(hidden.index_select(0, index.narrow(0, first, count))).cpu());
  }
  return logits.size() == 2 ? logits.back() : at::cat(logits);
}

// Where in `sequences` the first one with the same cache (or adapter) stands: groups without
// depending on addresses.
template <typename Key>
size_t FirstWith(std::span<const BatchSlice> slices, const Key& key, const BatchSlice& slice) {
  const auto same = [&](const BatchSlice& other) {
    return key(other.sequence->request()) == key(slice.sequence->request());
  };
  return static_cast<size_t>(std::ranges::find_if(slices, same) - slices.begin());
}

void Arrange(std::vector<BatchSlice>* slices) {
  const std::vector<BatchSlice> order = *slices;
  const auto key = [&order](const BatchSlice& slice) {
    return std::pair(FirstWith(
                         order, [](const auto& r) { return r.cache.get(); }, slice),
                     FirstWith(order, [](const auto& r) { return r.adapter.get(); }, slice));
  };
  std::ranges::stable_sort(*slices, {}, key);
  int64_t row = 0;
  for (BatchSlice& slice : *slices) {
    slice.first_row = row;
    row += slice.rows;
  }
}

}  // namespace

std::vector<BatchSlice> BatchPlanner::Plan(std::span<const std::unique_ptr<Sequence>> sequences) {
  std::vector<Sequence*> answering;
  std::vector<Sequence*> prompting;
  for (const auto& sequence : sequences) {
    (sequence->answering() ? answering : prompting).push_back(sequence.get());
  }
  // After the one that came last: with more sequences than rows, all have their turn.
  std::ranges::rotate(answering, std::ranges::find_if(answering, [this](const Sequence* sequence) {
                        return sequence->id() > last_answered_;
                      }));
  std::vector<BatchSlice> slices;
  int64_t left = max_rows_;
  for (Sequence* sequence : answering) {
    if (left > 0) {
      slices.push_back({.sequence = sequence, .rows = 1});
      last_answered_ = sequence->id();
      --left;
    }
  }
  for (Sequence* sequence : prompting) {
    const int64_t rows = std::min(left, static_cast<int64_t>(sequence->Waiting().size()));
    if (rows > 0) {
      slices.push_back({.sequence = sequence, .rows = rows});
      left -= rows;
    }
  }
  Arrange(&slices);
  return slices;
}

std::vector<at::Tensor> RunBatch(const Transformer& model, std::span<const BatchSlice> slices) {
  std::vector<int64_t> wanted_rows;
  std::vector<int64_t> wanted_counts;
  for (const BatchSlice& slice : slices) {
    slice.sequence->own_kv().Reserve(slice.sequence->own_kv().length() + slice.rows);
    wanted_counts.push_back(slice.sequence->WantedRows(slice.rows));
    for (int64_t row = slice.rows - wanted_counts.back(); row < slice.rows; ++row) {
      wanted_rows.push_back(slice.first_row + row);
    }
  }
  const at::Tensor hidden = Forward(model, slices);
  return WantedLogits(model, hidden, wanted_rows).split_with_sizes(wanted_counts);
}

}  // namespace docmem::engine
