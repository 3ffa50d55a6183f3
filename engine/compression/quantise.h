#pragma once

#include "engine/compression/prefill.h"

namespace docmem::engine {

/// The rows with keys and values as int8, symmetric: a key is key_scales[head, d] · q with scale =
/// max|x|/127 over the head's kept rows of channel d (post-RoPE keys have channels of very unequal
/// size), a value value_scales[row] · q with scale = max|x|/127 of its row. Scales are fp32; where
/// all numbers are 0, scale and numbers are 0. Positions and offsets are shared with `rows`.
KeptRows QuantiseKv(const KeptRows& rows);

}  // namespace docmem::engine
