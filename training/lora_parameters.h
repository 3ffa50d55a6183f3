#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "engine/model/lora.h"

namespace docmem::training {

/// What an adapter's weights look like.
struct LoraShape {
  int64_t rank = 0;
  double scale = 0.0;                   ///< see `LoraScale`
  std::vector<engine::Module> modules;  ///< of every layer
};

/// The trained weights of one adapter: fp32 master values and their gradients, each in one flat
/// tensor of N numbers, with a differentiable view per matrix. The optimiser and checkpoints see
/// the flat tensors, the model the views. One thread; not copyable, the views refer to the tensors.
class LoraParameters {
 public:
  /// As PEFT initialises: A uniform in ±1/√in (Kaiming with a = √5), B zero, so that training
  /// starts at the base model. A pure function of the arguments on one kind of device.
  LoraParameters(const engine::ModelConfig& config, LoraShape shape, at::Device device,
                 uint64_t seed);
  LoraParameters(const LoraParameters&) = delete;
  LoraParameters& operator=(const LoraParameters&) = delete;

  const LoraShape& shape() const { return shape_; }
  /// To be changed in place and without gradients only, between two passes.
  const at::Tensor& values() const { return values_; }  ///< [N] fp32
  /// What backward passes have added up since it was last set to 0.
  const at::Tensor& gradient() const { return gradient_; }  ///< [N] fp32

  /// Weights in which only this layer is filled, in `dtype`; gradients flow into `gradient()` where
  /// gradients are enabled.
  engine::LoraWeights Layer(int64_t layer, at::ScalarType dtype) const;

  /// All layers of `values` [N] in `dtype`, as copies.
  engine::LoraWeights Copy(const at::Tensor& values, at::ScalarType dtype) const;

 private:
  // Where a matrix lies in the flat tensors.
  struct Slot {
    int64_t offset = 0;
    int64_t rows = 0;
    int64_t columns = 0;
    at::Tensor Of(const at::Tensor& flat) const;
  };
  struct PairSlots {
    Slot a, b;
    at::Tensor a_leaf, b_leaf;  // views of `values_` whose gradients are views of `gradient_`
  };

  at::Tensor Leaf(const Slot& slot) const;
  void Initialise(uint64_t seed);

  LoraShape shape_;
  std::vector<std::vector<PairSlots>> layers_;  // by layer, in the order of `shape_.modules`
  at::Tensor values_;
  at::Tensor gradient_;
};

}  // namespace docmem::training
