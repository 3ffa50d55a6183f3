#include "engine/decode_step.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "engine/fused_step.h"
#include "engine/model/fused_layers.h"
#include "engine/step_attention.h"

namespace docmem::engine {
namespace {

constexpr int64_t kLogitRows = 64;  // bounds the memory of logits, which are wide

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

at::Tensor Forward(const Transformer& model, std::span<const BatchSlice> slices) {
  const BatchInput input = InputOf(slices, model.device());
  const std::vector<AdapterSpan> adapters = AdapterSpans(slices);
  const Rotation rotation = model.RotationOf(input.positions);
  at::Tensor hidden = model.Embed(input.ids);
  if (const FusedLayers* fused = model.fused()) {
    const FusedStep step(fused->kernels(), model.config(), slices, rotation, hidden.options());
    fused->Forward(hidden, adapters,
                   [&step](const Worker& worker, int64_t layer, const Matrix& qkv,
                           const Matrix& attended) { step.Attend(worker, layer, qkv, attended); });
    return hidden;
  }
  for (int64_t layer = 0; layer < model.config().layers; ++layer) {
    const Qkv qkv = model.Project(layer, hidden, adapters);
    const at::Tensor attended = AttendStep(model, layer, slices, qkv, rotation);
    hidden = model.Finish(layer, hidden, attended, adapters);
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
  int64_t left = options_.max_rows_per_step;
  for (Sequence* sequence : answering) {
    if (left > 0) {
      slices.push_back({.sequence = sequence, .rows = 1});
      last_answered_ = sequence->id();
      --left;
    }
  }
  if (!slices.empty()) left = std::min(left, options_.max_prompt_rows_beside_answers);
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
