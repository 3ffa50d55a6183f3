#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/kernels/huge_buffer.h"
#include "engine/kernels/matrix.h"

namespace docmem::engine {

/// A weight matrix [out, in] in the order in which the kernels read it, the same on every
/// instruction path: panels of 16 outputs, one behind the other; in a panel the inputs by pairs, of
/// each pair 16 × 2 numbers (output, input of the pair). fp32: by single inputs, 16 numbers each.
/// Missing outputs and inputs are zero: 16 outputs make a panel, 32 inputs a block.
///
/// Int8 is weight-only and symmetric: w ≈ scale[output] · q with q in −127 … 127 and scale =
/// max|w|/127 of the output's row. Immutable after construction.
class PackedMatrix {
 public:
  static constexpr int64_t kPanelOutputs = 16;
  static constexpr int64_t kBlockInputs = 32;

  PackedMatrix() = default;
  /// Copies the matrices' rows, one matrix behind the other (equal numbers of columns, fp32 or
  /// bf16), converting to `type`. Int8 works on the rows' fp32 values. The memory is a part of
  /// `buffer`, which the matrix keeps alive; null: a buffer of its own.
  PackedMatrix(std::span<const Matrix> matrices, NumberType type,
               std::shared_ptr<HugeBuffer> buffer = nullptr);

  /// What a matrix of this shape takes from its buffer.
  static size_t BufferBytes(int64_t outputs, int64_t inputs, NumberType type);

  NumberType type() const { return type_; }
  int64_t outputs() const { return outputs_; }
  int64_t inputs() const { return inputs_; }
  int64_t padded_inputs() const { return padded_inputs_; }
  int64_t panels() const { return (outputs_ + kPanelOutputs - 1) / kPanelOutputs; }
  size_t bytes() const { return bytes_; }
  bool empty() const { return outputs_ == 0; }

  /// First byte of a panel, aligned to 64.
  const std::byte* Panel(int64_t panel) const {
    return data_ + static_cast<size_t>(panel) * PanelBytes();
  }
  /// [panels · 16] fp32, only with int8.
  const float* scales() const { return scales_; }

 private:
  size_t PanelBytes() const {
    return static_cast<size_t>(padded_inputs_ * kPanelOutputs) * BytesOf(type_);
  }
  void PackRow(const float* row, int64_t output);

  NumberType type_ = NumberType::kFloat32;
  int64_t outputs_ = 0;
  int64_t inputs_ = 0;
  int64_t padded_inputs_ = 0;
  size_t bytes_ = 0;
  std::shared_ptr<HugeBuffer> buffer_;
  std::byte* data_ = nullptr;
  float* scales_ = nullptr;
};

}  // namespace docmem::engine
