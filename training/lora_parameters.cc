#include "training/lora_parameters.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <cmath>
#include <utility>

namespace docmem::training {

at::Tensor LoraParameters::Slot::Of(const at::Tensor& flat) const {
  return flat.narrow(0, offset, rows * columns).view({rows, columns});
}

LoraParameters::LoraParameters(const engine::ModelConfig& config, LoraShape shape,
                               at::Device device, uint64_t seed)
    : shape_(std::move(shape)), layers_(static_cast<size_t>(config.layers)) {
  int64_t size = 0;
  const auto take = [&size](int64_t rows, int64_t columns) {
    const Slot slot{size, rows, columns};
    size += rows * columns;
    return slot;
  };
  for (auto& layer : layers_) {
    for (const engine::Module module : shape_.modules) {
      const engine::LinearShape linear = engine::ShapeOf(module, config);
      PairSlots slots;
      slots.a = take(shape_.rank, linear.in);
      slots.b = take(linear.out, shape_.rank);
      layer.push_back(std::move(slots));
    }
  }
  values_ = at::zeros({size}, at::TensorOptions(device).dtype(at::kFloat));
  gradient_ = at::zeros_like(values_);
  Initialise(seed);
  for (auto& layer : layers_) {
    for (PairSlots& slots : layer) {
      slots.a_leaf = Leaf(slots.a);
      slots.b_leaf = Leaf(slots.b);
    }
  }
}

at::Tensor LoraParameters::Leaf(const Slot& slot) const {
  at::Tensor leaf = slot.Of(values_).detach();
  leaf.requires_grad_();
  leaf.mutable_grad() = slot.Of(gradient_);
  return leaf;
}

void LoraParameters::Initialise(uint64_t seed) {
  const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(seed);
  for (const auto& layer : layers_) {
    for (const PairSlots& slots : layer) {
      const double bound = 1.0 / std::sqrt(static_cast<double>(slots.a.columns));
      const at::Tensor draws = at::rand({slots.a.rows, slots.a.columns}, random);
      slots.a.Of(values_).copy_(draws * (2.0 * bound) - bound);
    }
  }
}

engine::LoraWeights LoraParameters::Layer(int64_t layer, at::ScalarType dtype) const {
  engine::LoraWeights weights;
  weights.layers.resize(layers_.size());
  const auto index = static_cast<size_t>(layer);
  for (size_t i = 0; i < shape_.modules.size(); ++i) {
    const PairSlots& slots = layers_[index][i];
    weights.layers[index][static_cast<size_t>(shape_.modules[i])] = {
        .a = slots.a_leaf.to(dtype), .b = slots.b_leaf.to(dtype), .scale = shape_.scale};
  }
  return weights;
}

engine::LoraWeights LoraParameters::Copy(const at::Tensor& values, at::ScalarType dtype) const {
  const auto copy = [&](const Slot& slot) {
    return slot.Of(values).to(dtype, /*non_blocking=*/false, /*copy=*/true);
  };
  engine::LoraWeights weights;
  weights.layers.resize(layers_.size());
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    for (size_t i = 0; i < shape_.modules.size(); ++i) {
      const PairSlots& slots = layers_[layer][i];
      weights.layers[layer][static_cast<size_t>(shape_.modules[i])] = {
          .a = copy(slots.a), .b = copy(slots.b), .scale = shape_.scale};
    }
  }
  return weights;
}

}  // namespace docmem::training
