#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "engine/artifacts/cache.h"
#include "engine/kernels/kernels.h"
#include "engine/model/model_config.h"

namespace docmem::engine {

/// Keys and values of one sequence's own tokens (question and answer), growing. One thread.
class OwnKv {
 public:
  /// For at most `most_rows` rows.
  OwnKv(const ModelConfig& config, const at::TensorOptions& options, int64_t most_rows);

  /// For how many rows room is made at most.
  static int64_t MostCapacity(int64_t most_rows);

  /// Makes room for `rows` rows in all; existing rows stay.
  void Reserve(int64_t rows);

  /// Writes rows behind the `length()` first ones of a layer: keys (after RoPE) and values
  /// [T, G, D]. Room must have been reserved.
  void Write(int64_t layer, const at::Tensor& keys, const at::Tensor& values);

  /// The first `rows` rows of a layer; views.
  LayerKv Rows(int64_t layer, int64_t rows) const;

  /// The first `rows` rows of one KV head, for the CPU kernels; a view.
  KvSpan HeadSpan(int64_t layer, int64_t head, int64_t rows) const;

  /// Where the next rows of one KV head go: [rows, D] behind the `length()` first ones.
  struct NextRows {
    Matrix keys;
    Matrix values;
  };
  NextRows Next(int64_t layer, int64_t head, int64_t rows);

  /// Counts rows that have been written in every layer.
  void Advance(int64_t rows) { length_ += rows; }

  int64_t length() const { return length_; }
  uint64_t bytes() const;

 private:
  std::vector<LayerKv> layers_;  // [G, capacity, D] each
  int64_t most_capacity_;
  int64_t length_ = 0;
  int64_t capacity_ = 0;
};

}  // namespace docmem::engine
