#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace docmem::engine {

/// Shape of the sketch of one layer: G KV heads of D rows and `columns` columns.
struct SketchShape {
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t columns = 0;
};

/// Gives the standard-normal sketch of a layer, [G, D, columns] fp32 on the CPU. Tests inject
/// kvpress's numbers; the engine uses `PhiloxSketch`.
using SketchSource = std::function<at::Tensor(int64_t layer, const SketchShape& shape)>;

/// Element (KV head, row, column) of a layer is a pure function of (seed, layer, KV head, row,
/// column): the first two words of Philox4x32-10 (Salmon et al., SC'11) with the seed as key and
/// (row, column, KV head, layer) as counter, made normal by Box–Muller in double precision.
SketchSource PhiloxSketch(uint64_t seed);

}  // namespace docmem::engine
