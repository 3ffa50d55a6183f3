#pragma once

#include <string>

#include "engine/model/lora.h"

namespace docmem::engine {

/// The packed form of an adapter: a sealed file (see sealed_file.h) with the tensors
/// "<layer>.<module>.a [r, in]" and "….b [out, r]", and the scales in the metadata under
/// "scale.<layer>.<module>". Weights on the CPU in one dtype; equal weights give equal bytes.
std::string PackedAdapterFile(const std::string& content_hash, const LoraWeights& weights);

}  // namespace docmem::engine
