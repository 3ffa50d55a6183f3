#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "engine/kernels/bfloat16.h"
#include "engine/kernels/kernels.h"

/// For the kernels' tests: numbers that are exact in bf16, held in either type.
namespace docmem::engine::testing {

class Numbers {
 public:
  Numbers(int64_t rows, int64_t columns, NumberType type, std::mt19937* random)
      : rows_(rows), columns_(columns), type_(type) {
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < rows * columns; ++i) {
      narrow_.push_back(ToBfloat16(normal(*random)));
      made_.push_back(FromBfloat16(narrow_.back()));
    }
    wide_ = made_;
  }

  Matrix matrix() {
    void* data = type_ == NumberType::kFloat32 ? static_cast<void*>(wide_.data()) : narrow_.data();
    return {data, type_, rows_, columns_, columns_};
  }
  /// As they were made.
  double At(int64_t row, int64_t column) const {
    return made_[static_cast<size_t>(row * columns_ + column)];
  }
  /// As they are now, after a kernel has written.
  double Now(int64_t row, int64_t column) const {
    const auto i = static_cast<size_t>(row * columns_ + column);
    return type_ == NumberType::kFloat32 ? wide_[i] : FromBfloat16(narrow_[i]);
  }

 private:
  int64_t rows_, columns_;
  NumberType type_;
  std::vector<uint16_t> narrow_;
  std::vector<float> wide_, made_;
};

/// Name of a path for parametrised tests.
inline std::string PathTestName(const ::testing::TestParamInfo<CpuPath>& info) {
  return std::string(CpuPathName(info.param));
}

}  // namespace docmem::engine::testing
