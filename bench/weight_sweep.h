#pragma once

#include <cstdint>
#include <vector>

#include "engine/engine.h"
#include "engine/kernels/packed_matrix.h"

namespace docmem::bench {

/// What decoding one token reads at least: one row through all linear weights and the head, with
/// the engine's own kernel. Holds a second copy of the weights.
class WeightSweep {
 public:
  /// `engine`: one loaded with `options`. Throws as `LoadWeights`.
  WeightSweep(const engine::EngineOptions& options, const engine::Engine& engine);

  /// One row after another, on all threads of the tensor library's pool.
  void Run(int rows) const;
  uint64_t bytes() const;  ///< read for a row

 private:
  std::vector<engine::PackedMatrix> matrices_;
};

}  // namespace docmem::bench
