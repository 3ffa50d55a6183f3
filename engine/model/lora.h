#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <vector>

#include "engine/model/model_config.h"
#include "engine/model/module.h"

namespace docmem::engine {

struct LinearShape {
  int64_t out = 0;
  int64_t in = 0;
};

/// Shape of the module's matrix in every layer of the model.
LinearShape ShapeOf(Module module, const ModelConfig& config);

/// One module's low-rank update: y += scale · (x Aᵀ) Bᵀ (LoRA, arXiv 2106.09685; scale as PEFT:
/// alpha/r, or alpha/√r with rsLoRA).
struct LoraPair {
  at::Tensor a;  ///< [r, in]
  at::Tensor b;  ///< [out, r]
  double scale = 0.0;
  /// [rows of the span, in], in training with dropout only: what x is multiplied with before A.
  /// The CPU kernels, which don't train, don't look at it.
  at::Tensor mask = {};

  bool defined() const { return a.defined(); }
};

/// The weights of one adapter, in the compute dtype on the model's device. A module that the
/// adapter lacks has an undefined pair and contributes exactly zero. Immutable after construction
/// by convention: inference reads it from the engine thread while others hold it.
struct LoraWeights {
  std::vector<std::array<LoraPair, kModuleCount>> layers;  ///< one entry per model layer

  const LoraPair& At(int64_t layer, Module module) const {
    return layers[static_cast<size_t>(layer)][static_cast<size_t>(module)];
  }
};

/// A run of consecutive rows of a flattened batch under one adapter (null = base model).
struct AdapterSpan {
  const LoraWeights* adapter = nullptr;
  int64_t first_row = 0;
  int64_t rows = 0;
};

}  // namespace docmem::engine
