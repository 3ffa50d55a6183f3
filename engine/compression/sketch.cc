#include "engine/compression/sketch.h"

#include <ATen/ATen.h>

#include <array>
#include <cmath>
#include <numbers>

#include "engine/compression/philox.h"

namespace docmem::engine {
namespace {

// Box–Muller; the first number is in (0, 1], so its logarithm is finite.
float Normal(const PhiloxCounter& words) {
  constexpr double kUnit = 1.0 / 4294967296.0;
  const double radius = std::sqrt(-2.0 * std::log((words[0] + 1.0) * kUnit));
  return static_cast<float>(radius * std::cos(2.0 * std::numbers::pi * (words[1] * kUnit)));
}

}  // namespace

SketchSource PhiloxSketch(uint64_t seed) {
  return [seed](int64_t layer, const SketchShape& shape) {
    at::Tensor sketch =
        at::empty({shape.kv_heads, shape.head_dim, shape.columns}, at::TensorOptions(at::kFloat));
    float* out = sketch.mutable_data_ptr<float>();
    for (int64_t head = 0; head < shape.kv_heads; ++head) {
      for (int64_t row = 0; row < shape.head_dim; ++row) {
        for (int64_t column = 0; column < shape.columns; ++column) {
          const PhiloxCounter counter = {static_cast<uint32_t>(row), static_cast<uint32_t>(column),
                                         static_cast<uint32_t>(head), static_cast<uint32_t>(layer)};
          *out++ = Normal(Philox4x32(counter, seed));
        }
      }
    }
    return sketch;
  };
}

}  // namespace docmem::engine
