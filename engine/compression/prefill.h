#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/compression/profile.h"
#include "engine/compression/sketch.h"
#include "engine/model/transformer.h"

namespace docmem::engine {

/// The rows of one context that survived, before they become a `Cache`.
struct KeptRows {
  at::Tensor keys;    ///< [N, D] after RoPE at the original positions; by layer, KV head, position
  at::Tensor values;  ///< [N, D]
  at::Tensor positions;  ///< [N] int32
  at::Tensor offsets;    ///< [L·G + 1] int64: (layer, KV head) i has rows offsets[i] … offsets[i+1]
  at::Tensor key_scales;    ///< [L·G, D] fp32, only of int8 rows, see `QuantiseKv`
  at::Tensor value_scales;  ///< [N] fp32, only of int8 rows
};

/// Which rows of a context a cache keeps, by layer, KV head, position.
struct KeptPositions {
  at::Tensor positions;  ///< [N] int32
  at::Tensor offsets;    ///< [L·G + 1] int64
};

struct PrefillOptions {
  std::vector<int64_t> context_ids;       ///< S ids: head, then document
  int64_t head_tokens = 0;                ///< never evicted
  std::vector<Compression> compressions;  ///< one result each, from one pass; not empty
  /// Null: the base model computes the pass; else the KV, and all that scorers see, is the
  /// adapter's.
  const LoraWeights* writer = nullptr;
  /// Not empty: nothing is scored; compression i keeps exactly the positions of entry i, which an
  /// earlier pass over the same context chose for it.
  std::vector<KeptPositions> chosen;
  /// Only the positions are wanted: the results have no keys and values.
  bool positions_only = false;
  int64_t chunk_rows = 512;  ///< rows that are projected and scored in one unit of work
  SketchSource sketch;       ///< null: the numbers of the compressions' seeds
};

/// Layer-by-layer prefill of a whole context with eviction: after a layer is scored only its kept
/// rows survive, so the full KV cache never exists in memory. Work is cut into units, so that
/// decode steps can run in between: the projections of at most `chunk_rows` rows of one layer, the
/// rest of the layer for a part of them, and the choice of what the layer keeps.
///
/// Peak memory above weights and kept rows: at most 2.5 × (K and V of all S tokens of one layer +
/// 2·S·hidden·dtype). Used from the thread that runs tensor work; not thread-safe. Results don't
/// depend on what runs between units. Destroying it abandons the work. Where one model chooses and
/// another writes, two passes follow each other: `positions_only`, then `chosen`.
class Prefill {
 public:
  /// Throws `kInvalidArgument` for an empty context, `head_tokens` outside 0 … S, a ratio over
  /// 10⁶, a blend for a profile without one.
  Prefill(const Transformer& model, PrefillOptions options);
  ~Prefill();
  Prefill(const Prefill&) = delete;
  Prefill& operator=(const Prefill&) = delete;

  /// Runs one unit. Returns true when the last one has run. Throws `kInternal` naming the layer
  /// when scoring fails numerically; then the object is dead.
  bool Step();

  int64_t units_done() const;
  int64_t units_total() const;
  /// Of the time spent in `Step`: on scoring and selection.
  double score_seconds() const;

  /// After `Step` has returned true, once: one entry per compression, in order.
  std::vector<KeptRows> TakeResults();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace docmem::engine
