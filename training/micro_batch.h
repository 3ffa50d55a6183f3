#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/model/transformer.h"
#include "training/examples.h"
#include "training/lora_parameters.h"
#include "training/prefix_cache.h"

namespace docmem::training {

struct PassOptions {
  bool gradients = true;  ///< false: the loss alone
  /// Gradients are those of `loss_scale` × the summed loss: 1 / labels of the whole batch, so that
  /// micro-batches add up to the mean over all label tokens.
  double loss_scale = 1.0;
  bool recompute = false;     ///< layers run forward again instead of keeping their activations
  double dropout = 0.0;       ///< of the adapters' inputs, as PEFT's `lora_dropout`
  uint64_t dropout_seed = 0;  ///< the masks are a function of it, the layer and the module
};

/// Forward and, with gradients, backward pass of a few examples through the frozen base with the
/// adapter on all their rows, in units of work.
///
/// The examples' rows are packed behind each other without padding: T rows go through the linear
/// layers together, and each example attends to its prefix and its own rows alone. Layers are cut
/// apart in the graph: each has its own backward, which starts with the gradient that the next
/// layer left; so a unit is one layer one way (or some rows' logits, or a part of a prefix), and
/// each layer's activations go as soon as they have been used. Logits are made for rows with a
/// label alone. Outside inference mode; one thread.
class MicroBatch {
 public:
  /// Model, parameters, prefixes and examples must outlive the pass; the examples aren't empty.
  MicroBatch(const engine::Transformer& model, const LoraParameters& parameters,
             PrefixCache* prefixes, std::vector<const Example*> examples, PassOptions options);

  /// Runs one unit; true when the pass is complete: then the gradients have been added to
  /// `LoraParameters::gradient`. Throws `kInternal` when the loss isn't finite; then gradients are
  /// incomplete and only destruction is allowed.
  bool Step();

  /// The labels' summed negative log-likelihoods, in nats; after `Step` has returned true.
  double loss_sum() const { return loss_sum_; }
  int64_t labels() const { return label_ids_.size(0); }
  int64_t rows() const { return ids_.size(0); }

 private:
  enum class Stage { kPrefixes, kForward, kHead, kBackward, kDone };

  void Pack();
  void AddPrefix();
  void Embed();
  void ForwardLayer();
  void HeadRows();
  void BackwardLayer();
  at::Tensor Layer(int64_t layer, const at::Tensor& hidden) const;
  at::Tensor Attend(int64_t layer, const engine::Qkv& qkv) const;
  void AddDropout(int64_t layer, engine::LoraWeights* weights) const;

  const engine::Transformer& model_;
  const LoraParameters& parameters_;
  PrefixCache* prefixes_;
  const std::vector<const Example*> examples_;
  const PassOptions options_;

  at::Tensor ids_;         // [T] int64
  at::Tensor label_rows_;  // [labels] int64: rows that have a label
  at::Tensor label_ids_;   // [labels] int64
  engine::Rotation rotation_;
  std::vector<std::shared_ptr<const PrefixKv>> prefix_kv_;  // one per example
  std::vector<at::Tensor> masks_;  // [H/G·t, p + t] per example, added to the attention's scores

  Stage stage_ = Stage::kPrefixes;
  int64_t layer_ = 0;
  int64_t head_done_ = 0;            // labels whose loss has been computed
  at::Tensor hidden_;                // [T, hidden]
  std::vector<at::Tensor> inputs_;   // of every layer [T, hidden], leaves of its graph
  std::vector<at::Tensor> outputs_;  // [T, hidden]; undefined where they are computed again
  at::Tensor gradient_;              // [T, hidden] of the output of the layer that is next
  double loss_sum_ = 0.0;
};

/// Runs a whole pass.
void RunPass(MicroBatch* pass);

}  // namespace docmem::training
