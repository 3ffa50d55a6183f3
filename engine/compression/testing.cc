#include "engine/compression/testing.h"

#include <ATen/ATen.h>

namespace docmem::engine::testing {

SketchSource GoldenSketch(const at::Tensor& sketch) {
  return [sketch](int64_t layer, const SketchShape&) { return sketch[layer]; };
}

std::vector<KeptRows> RunPrefill(const Transformer& model, const PrefillOptions& options) {
  Prefill prefill(model, options);
  while (!prefill.Step()) {
  }
  return prefill.TakeResults();
}

}  // namespace docmem::engine::testing
