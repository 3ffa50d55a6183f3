#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/kernels/kernels.h"
#include "engine/kernels/parallel.h"
#include "engine/model/lora.h"

namespace docmem::engine {

/// What the adapters of a batch add to one product of a layer, whose output holds one or more
/// modules side by side: for each span and module its two halves, ready for the kernels. Refers to
/// the adapters and to the memory of `x` and `y`.
class LoraUpdates {
 public:
  LoraUpdates(const ModelConfig& config, int64_t layer, std::span<const Module> modules,
              std::span<const AdapterSpan> spans, const Matrix& x, const Matrix& y);

  bool empty() const { return updates_.empty(); }
  /// This worker's part of x Aᵀ; the others' are behind a barrier.
  void Down(const KernelTable& kernels, const Worker& worker) const;
  /// This worker's part of y += scale · (x Aᵀ) Bᵀ.
  void Up(const KernelTable& kernels, const Worker& worker) const;

 private:
  void Add(const LoraPair& pair, const AdapterSpan& span, const Matrix& x, const Matrix& y);

  std::vector<LoraArgs> updates_;
  std::vector<float> down_;
};

}  // namespace docmem::engine
