#include "engine/artifacts/adapter.h"

#include <ATen/ATen.h>

#include <utility>

namespace docmem::engine {
namespace {

uint64_t Bytes(const LoraWeights& weights) {
  uint64_t bytes = 0;
  for (const auto& layer : weights.layers) {
    for (const LoraPair& pair : layer) {
      if (pair.defined()) {
        bytes += pair.a.nbytes() + pair.b.nbytes();
      }
    }
  }
  return bytes;
}

}  // namespace

Adapter::Adapter(std::string content_hash, LoraWeights weights)
    : content_hash_(std::move(content_hash)),
      weights_(std::move(weights)),
      bytes_(Bytes(weights_)) {}

}  // namespace docmem::engine
