#pragma once

#include <cstddef>
#include <cstdint>

namespace docmem::engine {

/// Types of numbers that the kernels read and write; sums are fp32 always.
enum class NumberType { kFloat32, kBfloat16, kInt8 };

constexpr size_t BytesOf(NumberType type) {
  return type == NumberType::kFloat32 ? 4 : type == NumberType::kBfloat16 ? 2 : 1;
}

/// Rows in memory, not owned: row i begins `i · stride` numbers behind `data`.
struct Matrix {
  void* data = nullptr;
  NumberType type = NumberType::kFloat32;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stride = 0;  ///< in numbers, ≥ columns

  /// First number of a row.
  void* Row(int64_t row) const {
    return static_cast<std::byte*>(data) + static_cast<size_t>(row * stride) * BytesOf(type);
  }
  /// `count` rows from `first` on.
  Matrix Rows(int64_t first, int64_t count) const {
    return {Row(first), type, count, columns, stride};
  }
  /// Columns first … first + count − 1.
  Matrix Columns(int64_t first, int64_t count) const {
    std::byte* begin = static_cast<std::byte*>(data) + static_cast<size_t>(first) * BytesOf(type);
    return {begin, type, rows, count, stride};
  }
};

}  // namespace docmem::engine
