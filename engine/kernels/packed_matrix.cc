#include "engine/kernels/packed_matrix.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/kernels/bfloat16.h"

namespace docmem::engine {
namespace {

constexpr size_t kAlignment = 64;

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

float Widest(const float* row, int64_t columns) {
  float widest = 0.0F;
  for (int64_t i = 0; i < columns; ++i) widest = std::max(widest, std::abs(row[i]));
  return widest;
}

void WidenRow(const Matrix& matrix, int64_t row, float* wide) {
  if (matrix.type == NumberType::kFloat32) {
    std::memcpy(wide, matrix.Row(row), static_cast<size_t>(matrix.columns) * sizeof(float));
    return;
  }
  const auto* narrow = static_cast<const uint16_t*>(matrix.Row(row));
  for (int64_t i = 0; i < matrix.columns; ++i) wide[i] = FromBfloat16(narrow[i]);
}

}  // namespace

size_t PackedMatrix::BufferBytes(int64_t outputs, int64_t inputs, NumberType type) {
  const int64_t padded = RoundUp(outputs, kPanelOutputs);
  const size_t numbers = static_cast<size_t>(padded * RoundUp(inputs, kBlockInputs));
  const size_t scales = type == NumberType::kInt8 ? static_cast<size_t>(padded) * 4 : 0;
  return numbers * BytesOf(type) + scales;
}

PackedMatrix::PackedMatrix(std::span<const Matrix> matrices, NumberType type,
                           std::shared_ptr<HugeBuffer> buffer)
    : type_(type), inputs_(matrices.front().columns), buffer_(std::move(buffer)) {
  for (const Matrix& matrix : matrices) outputs_ += matrix.rows;
  padded_inputs_ = RoundUp(inputs_, kBlockInputs);
  bytes_ = BufferBytes(outputs_, inputs_, type_);
  if (buffer_ == nullptr) buffer_ = std::make_shared<HugeBuffer>(bytes_ + kAlignment);
  const size_t numbers = static_cast<size_t>(panels()) * PanelBytes();
  data_ = buffer_->Take(numbers);
  if (type_ == NumberType::kInt8) {
    scales_ = reinterpret_cast<float*>(buffer_->Take(bytes_ - numbers));
  }
  std::vector<float> wide(static_cast<size_t>(inputs_));
  int64_t output = 0;
  for (const Matrix& matrix : matrices) {
    for (int64_t row = 0; row < matrix.rows; ++row, ++output) {
      WidenRow(matrix, row, wide.data());
      PackRow(wide.data(), output);
    }
  }
}

void PackedMatrix::PackRow(const float* row, int64_t output) {
  std::byte* panel = data_ + static_cast<size_t>(output / kPanelOutputs) * PanelBytes();
  const int64_t lane = output % kPanelOutputs;
  if (type_ == NumberType::kFloat32) {
    auto* numbers = reinterpret_cast<float*>(panel);
    for (int64_t i = 0; i < inputs_; ++i) numbers[i * kPanelOutputs + lane] = row[i];
    return;
  }
  const auto place = [lane](int64_t i) { return (i / 2 * kPanelOutputs + lane) * 2 + i % 2; };
  if (type_ == NumberType::kBfloat16) {
    auto* numbers = reinterpret_cast<uint16_t*>(panel);
    for (int64_t i = 0; i < inputs_; ++i) numbers[place(i)] = ToBfloat16(row[i]);
    return;
  }
  const float scale = Widest(row, inputs_) / 127.0F;
  scales_[output] = scale;
  auto* numbers = reinterpret_cast<int8_t*>(panel);
  for (int64_t i = 0; i < inputs_ && scale > 0.0F; ++i) {
    numbers[place(i)] = static_cast<int8_t>(std::nearbyint(row[i] / scale));
  }
}

}  // namespace docmem::engine
