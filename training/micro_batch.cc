#include "training/micro_batch.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/compression/philox.h"
#include "engine/formats/error.h"

namespace docmem::training {
namespace {

constexpr int64_t kLogitRows = 256;  // bounds the memory of logits, which are wide

// Query row i of each of the `repeat` query heads of a KV head sees the prefix and rows 0 … i:
// [repeat·t, prefix + t], 0 or −∞.
at::Tensor CausalMask(int64_t prefix, int64_t rows, int64_t repeat,
                      const at::TensorOptions& options) {
  const double hidden = -std::numeric_limits<double>::infinity();
  const at::Tensor own = at::full({rows, rows}, hidden, options).triu(1);
  return at::cat({at::zeros({rows, prefix}, options), own}, 1).repeat({repeat, 1});
}

}  // namespace

MicroBatch::MicroBatch(const engine::Transformer& model, const LoraParameters& parameters,
                       PrefixCache* prefixes, std::vector<const Example*> examples,
                       PassOptions options)
    : model_(model),
      parameters_(parameters),
      prefixes_(prefixes),
      examples_(std::move(examples)),
      options_(options) {
  Pack();
}

void MicroBatch::Pack() {
  std::vector<int64_t> ids, positions, label_rows, label_ids;
  for (const Example* example : examples_) {
    const auto prefix = static_cast<int64_t>(example->prefix_ids.size());
    for (size_t row = 0; row < example->row_ids.size(); ++row) {
      if (example->labels[row] != kNoLabel) {
        label_rows.push_back(static_cast<int64_t>(ids.size()));
        label_ids.push_back(example->labels[row]);
      }
      ids.push_back(example->row_ids[row]);
      positions.push_back(prefix + static_cast<int64_t>(row));
    }
  }
  const auto on_device = [this](const std::vector<int64_t>& numbers) {
    return at::tensor(numbers, at::kLong).to(model_.device());
  };
  ids_ = on_device(ids);
  label_rows_ = on_device(label_rows);
  label_ids_ = on_device(label_ids);
  rotation_ = model_.RotationOf(on_device(positions));
}

bool MicroBatch::Step() {
  switch (stage_) {
    case Stage::kPrefixes:
      AddPrefix();
      break;
    case Stage::kForward:
      ForwardLayer();
      break;
    case Stage::kHead:
      HeadRows();
      break;
    case Stage::kBackward:
      BackwardLayer();
      break;
    case Stage::kDone:
      break;
  }
  return stage_ == Stage::kDone;
}

void MicroBatch::AddPrefix() {
  const Example& example = *examples_[prefix_kv_.size()];
  auto prefix = prefixes_->Find(example.prefix_ids);
  if (prefix == nullptr) prefix = prefixes_->Step(example.prefix_ids);
  if (prefix == nullptr) return;
  prefix_kv_.push_back(std::move(prefix));
  masks_.push_back(CausalMask(static_cast<int64_t>(example.prefix_ids.size()),
                              static_cast<int64_t>(example.row_ids.size()),
                              model_.config().query_heads / model_.config().kv_heads,
                              at::TensorOptions(model_.device()).dtype(model_.dtype())));
  if (prefix_kv_.size() == examples_.size()) Embed();
}

void MicroBatch::Embed() {
  hidden_ = model_.Embed(ids_);
  stage_ = Stage::kForward;
}

void MicroBatch::ForwardLayer() {
  at::Tensor input = hidden_.detach();
  // Nothing trained lies before the first layer.
  if (options_.gradients && layer_ > 0) input.requires_grad_();
  const bool keep = options_.gradients && !options_.recompute;
  const c10::AutoGradMode mode(keep);
  const at::Tensor output = Layer(layer_, input);
  if (options_.gradients) {
    inputs_.push_back(input);
    outputs_.push_back(keep ? output : at::Tensor());
  }
  hidden_ = output.detach();
  if (++layer_ < model_.config().layers) return;
  if (options_.gradients) hidden_.requires_grad_();
  stage_ = Stage::kHead;
}

void MicroBatch::HeadRows() {
  const c10::AutoGradMode mode(options_.gradients);
  const int64_t rows = std::min(kLogitRows, labels() - head_done_);
  const at::Tensor wanted = hidden_.index_select(0, label_rows_.narrow(0, head_done_, rows));
  const at::Tensor loss =
      at::cross_entropy_loss(model_.Logits(wanted), label_ids_.narrow(0, head_done_, rows),
                             /*weight=*/{}, at::Reduction::Sum);
  loss_sum_ += loss.item<double>();
  if (!std::isfinite(loss_sum_)) engine::ThrowInternal("loss", "isn't finite");
  if (options_.gradients) (loss * options_.loss_scale).backward();
  head_done_ += rows;
  if (head_done_ < labels()) return;
  if (options_.gradients) gradient_ = hidden_.grad();
  hidden_.reset();
  stage_ = options_.gradients ? Stage::kBackward : Stage::kDone;
}

void MicroBatch::BackwardLayer() {
  const c10::AutoGradMode mode(true);
  --layer_;
  at::Tensor input = std::move(inputs_.back());
  at::Tensor output = std::move(outputs_.back());
  inputs_.pop_back();
  outputs_.pop_back();
  if (!output.defined()) output = Layer(layer_, input);
  output.backward(gradient_);
  gradient_ = input.grad();
  if (layer_ == 0) stage_ = Stage::kDone;
}

at::Tensor MicroBatch::Layer(int64_t layer, const at::Tensor& hidden) const {
  engine::LoraWeights weights = parameters_.Layer(layer, model_.dtype());
  if (options_.dropout > 0.0) AddDropout(layer, &weights);
  const engine::AdapterSpan span[] = {{&weights, 0, rows()}};
  engine::Qkv qkv = model_.Project(layer, hidden, span);
  qkv.q = model_.Rotate(qkv.q, rotation_);
  qkv.k = model_.Rotate(qkv.k, rotation_);
  return model_.Finish(layer, hidden, Attend(layer, qkv), span);
}

at::Tensor MicroBatch::Attend(int64_t layer, const engine::Qkv& qkv) const {
  const int64_t groups = qkv.k.size(1), dim = qkv.k.size(2), repeat = qkv.q.size(1) / groups;
  std::vector<at::Tensor> attended;
  int64_t first = 0;
  for (size_t i = 0; i < examples_.size(); ++i) {
    const auto rows = static_cast<int64_t>(examples_[i]->row_ids.size());
    const auto with_prefix = [&](const at::Tensor& prefix, const at::Tensor& own) {
      return at::cat({prefix[layer], own.narrow(0, first, rows).transpose(0, 1)}, 1).unsqueeze(0);
    };
    // All query heads of a KV head become rows of one head, so no key is repeated.
    const at::Tensor queries = qkv.q.narrow(0, first, rows)
                                   .reshape({rows, groups, repeat, dim})
                                   .permute({1, 2, 0, 3})
                                   .reshape({1, groups, repeat * rows, dim});
    const at::Tensor out =
        at::scaled_dot_product_attention(queries, with_prefix(prefix_kv_[i]->keys, qkv.k),
                                         with_prefix(prefix_kv_[i]->values, qkv.v), masks_[i]);
    attended.push_back(out.reshape({groups, repeat, rows, dim})
                           .permute({2, 0, 1, 3})
                           .reshape({rows, groups * repeat, dim}));
    first += rows;
  }
  return at::cat(attended);
}

void MicroBatch::AddDropout(int64_t layer, engine::LoraWeights* weights) const {
  const double kept = 1.0 - options_.dropout;
  for (int module = 0; module < engine::kModuleCount; ++module) {
    engine::LoraPair& pair =
        weights->layers[static_cast<size_t>(layer)][static_cast<size_t>(module)];
    if (!pair.defined()) continue;
    const auto draw = engine::Philox4x32(
        {static_cast<uint32_t>(layer), static_cast<uint32_t>(module)}, options_.dropout_seed);
    const at::Generator random =
        at::make_generator<at::CPUGeneratorImpl>(uint64_t{draw[0]} << 32 | draw[1]);
    pair.mask = at::empty({rows(), pair.a.size(1)}, at::kFloat)
                    .bernoulli_(kept, random)
                    .div_(kept)
                    .to(model_.device(), model_.dtype());
  }
}

void RunPass(MicroBatch* pass) {
  while (!pass->Step()) {
  }
}

}  // namespace docmem::training
