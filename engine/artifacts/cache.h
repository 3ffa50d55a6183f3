#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "engine/artifacts/cache_identity.h"
#include "engine/compression/prefill.h"
#include "engine/kernels/kernels.h"

namespace docmem::engine {

/// Keys and values of one layer.
struct LayerKv {
  at::Tensor keys;    ///< [G, n, D], a view of the cache
  at::Tensor values;  ///< [G, n, D]
};

/// Keys and values of one KV head of one layer.
struct HeadKv {
  at::Tensor keys;    ///< [n_g, D], a view of the cache
  at::Tensor values;  ///< [n_g, D]
};

/// One compressed KV cache of one document. Const after construction, shared by all questions on
/// the document and by all threads.
class Cache {
 public:
  /// Takes the rows over; positions and offsets are moved to the CPU. Shapes as `KeptRows`; throws
  /// `kInternal` naming what doesn't fit: dtypes, shapes, offsets that don't rise from 0 to N,
  /// positions of a head that don't rise or lie outside 0 … S.
  Cache(CacheIdentity identity, int64_t layers, int64_t kv_heads, KeptRows rows);

  const CacheIdentity& identity() const { return identity_; }
  const KeptRows& rows() const { return rows_; }
  int64_t layers() const { return layers_; }
  int64_t kv_heads() const { return kv_heads_; }

  /// Whether keys and values are int8.
  bool quantised() const { return rows_.key_scales.defined(); }
  /// Whether the layer's heads keep different numbers of tokens.
  bool Ragged(int64_t layer) const;
  /// Rows of a layer that isn't ragged, of a cache that isn't quantised.
  LayerKv Layer(int64_t layer) const;
  /// Rows of one KV head of a layer, ragged or not; there may be none. Of a quantised cache a copy
  /// in fp32: only the CPU kernels read int8 in place.
  HeadKv Head(int64_t layer, int64_t head) const;
  /// Rows `offsets[g]` … `offsets[g + 1]` of `rows()` are the layer's KV head g: [G + 1].
  std::span<const int64_t> LayerOffsets(int64_t layer) const;

  /// Rows of one KV head of a layer, ragged or not, for the CPU kernels. A view of the cache.
  KvSpan HeadSpan(int64_t layer, int64_t head) const;

  /// Position of the first token behind the context: S, or the head's length when nothing of the
  /// document is left.
  int64_t next_position() const { return next_position_; }
  /// Rows per KV head; the mean, rounded down, of a ragged cache.
  int64_t kept_tokens() const;
  /// Bytes of keys, values, positions and offsets: what the device tier counts.
  uint64_t bytes() const;

 private:
  CacheIdentity identity_;
  int64_t layers_ = 0;
  int64_t kv_heads_ = 0;
  KeptRows rows_;
  int64_t next_position_ = 0;
};

}  // namespace docmem::engine
