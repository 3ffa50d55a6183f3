#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "engine/decode_step.h"
#include "engine/kernels/kernels.h"
#include "engine/kernels/parallel.h"
#include "engine/model/transformer.h"

namespace docmem::engine {

/// A step's attention on the CPU kernels, layer by layer: `AttendStep` for workers. Made once per
/// step; refers to the slices and the rotation.
class FusedStep {
 public:
  FusedStep(const KernelTable& kernels, const ModelConfig& config,
            std::span<const BatchSlice> slices, const Rotation& rotation,
            const at::TensorOptions& options);

  /// Called by every worker. qkv [T, (H + 2·G)·D] before RoPE; attended [T, H·D].
  void Attend(const Worker& worker, int64_t layer, const Matrix& qkv, const Matrix& attended) const;

 private:
  // One slice's new keys and values of one KV head.
  struct Write {
    const BatchSlice* slice = nullptr;
    int64_t head = 0;
  };
  // Rows of the batch that lie side by side, all on one cache, under one KV head: the cache is
  // read once for all of them.
  struct Item {
    std::span<const BatchSlice> slices;  // those that the rows belong to
    int64_t head = 0;
    int64_t first_row = 0;
    int64_t rows = 0;
  };

  void PlanGroup(std::span<const BatchSlice> slices, int64_t item_rows);
  void RotateTo(const Matrix& from, int64_t row, const Matrix& to) const;
  void WriteOwn(const Write& write, int64_t layer, const Matrix& keys, const Matrix& values) const;
  void AttendItem(const Item& item, int64_t layer, const Matrix& attended) const;

  const KernelTable& kernels_;
  int64_t dim_, q_width_, kv_width_, kv_heads_, repeat_;
  const float* cosine_;
  const float* sine_;
  std::vector<Write> writes_;
  std::vector<Item> items_;
  at::Tensor rotated_;  // [T, H·D]
  Matrix queries_;      // of rotated_
};

}  // namespace docmem::engine
