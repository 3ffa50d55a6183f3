#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "engine/decode_step.h"
#include "engine/model/transformer.h"

namespace docmem::engine {

/// One layer's attention of a step. Rotates queries and keys to the rows' positions, writes the
/// sequences' new keys and values behind their own ones (room must have been reserved), and
/// attends: every row sees its sequence's cached rows and its own up to itself, as one set. No
/// cached row is copied. `slices` lie side by side by cache, as `BatchPlanner` arranges them. → [T,
/// H, D].
at::Tensor AttendStep(const Transformer& model, int64_t layer, std::span<const BatchSlice> slices,
                      const Qkv& qkv, const Rotation& rotation);

}  // namespace docmem::engine
