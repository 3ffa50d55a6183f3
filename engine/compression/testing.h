#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "engine/compression/prefill.h"
#include "engine/compression/sketch.h"

/// What tests of several folders need around a prefill; not part of the engine.
namespace docmem::engine::testing {

/// The sketch of a golden file, [L, G, D, columns].
SketchSource GoldenSketch(const at::Tensor& sketch);

/// Runs a prefill to its end.
std::vector<KeptRows> RunPrefill(const Transformer& model, const PrefillOptions& options);

}  // namespace docmem::engine::testing
