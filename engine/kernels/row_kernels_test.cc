#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/kernels/kernels.h"
#include "engine/kernels/testing.h"

namespace docmem::engine {
namespace {

using testing::Numbers;

constexpr int64_t kRows = 5;

class RowKernelsTest : public ::testing::TestWithParam<std::tuple<CpuPath, int64_t>> {
 protected:
  const KernelTable& kernels_ = KernelsOf(std::get<0>(GetParam()));
  const int64_t width_ = std::get<1>(GetParam());
  std::mt19937 random_{3};
};

double Bound(NumberType type, double value) {
  return type == NumberType::kFloat32 ? 1e-6 * (1.0 + std::abs(value))
                                      : 0.01 * std::abs(value) + 1e-3;
}

TEST_P(RowKernelsTest, NormDividesByTheRootOfTheMeanSquare) {
  for (const NumberType type : {NumberType::kFloat32, NumberType::kBfloat16}) {
    Numbers x(kRows, width_, type, &random_), y(kRows, width_, type, &random_);
    std::vector<float> weight(static_cast<size_t>(width_), 1.5F);
    kernels_.rms_norm(x.matrix(), weight.data(), 1e-5F, y.matrix());
    for (int64_t row = 0; row < kRows; ++row) {
      double squares = 0.0;
      for (int64_t i = 0; i < width_; ++i) squares += x.At(row, i) * x.At(row, i);
      const double scale = 1.5 / std::sqrt(squares / static_cast<double>(width_) + 1e-5);
      for (int64_t i = 0; i < width_; ++i) {
        EXPECT_NEAR(y.Now(row, i), x.At(row, i) * scale, Bound(type, x.At(row, i) * scale));
      }
    }
  }
}

TEST_P(RowKernelsTest, RotationTurnsADimensionWithTheOneHalfAHeadAway) {
  for (const NumberType type : {NumberType::kFloat32, NumberType::kBfloat16}) {
    const int64_t half = width_ / 2;
    Numbers x(kRows, 2 * width_, type, &random_), y(kRows, 2 * width_, type, &random_);
    std::vector<float> cosine, sine;
    for (int64_t i = 0; i < kRows * half; ++i) {
      cosine.push_back(std::cos(static_cast<float>(i)));
      sine.push_back(std::sin(static_cast<float>(i)));
    }
    kernels_.rotate(x.matrix(), width_, cosine.data(), sine.data(), y.matrix());
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t i = 0; i < half; ++i) {
        const auto angle = static_cast<size_t>(row * half + i);
        const double c = cosine[angle], s = sine[angle];
        const double first = x.At(row, width_ + i), second = x.At(row, width_ + half + i);
        const double wanted = first * c - second * s, other = second * c + first * s;
        EXPECT_NEAR(y.Now(row, width_ + i), wanted, Bound(type, wanted));
        EXPECT_NEAR(y.Now(row, width_ + half + i), other, Bound(type, other));
      }
    }
  }
}

TEST_P(RowKernelsTest, SiluTimesUpAndSums) {
  for (const NumberType type : {NumberType::kFloat32, NumberType::kBfloat16}) {
    Numbers gate(kRows, width_, type, &random_), up(kRows, width_, type, &random_);
    Numbers y(kRows, width_, type, &random_);
    kernels_.silu_multiply(gate.matrix(), up.matrix(), y.matrix());
    for (int64_t i = 0; i < width_; ++i) {
      const double g = gate.At(2, i), wanted = g / (1.0 + std::exp(-g)) * up.At(2, i);
      EXPECT_NEAR(y.Now(2, i), wanted, Bound(type, wanted));
    }
    kernels_.add(gate.matrix(), up.matrix());
    for (int64_t i = 0; i < width_; ++i) {
      const double wanted = gate.At(4, i) + up.At(4, i);
      EXPECT_NEAR(up.Now(4, i), wanted, Bound(type, wanted));
    }
  }
}

TEST_P(RowKernelsTest, LogSumExpAndThePlaceOfTheFirstLargest) {
  for (const int64_t count : {int64_t{1}, width_, 64 * width_ + 7}) {
    Numbers x(1, count, NumberType::kFloat32, &random_);
    auto* numbers = static_cast<float*>(x.matrix().data);
    double sum = 0.0;
    int64_t best = 0;
    for (int64_t i = 0; i < count; ++i) {
      numbers[i] *= 20.0F;
      sum += std::exp(static_cast<double>(numbers[i]));
      if (numbers[i] > numbers[best]) best = i;
    }
    const LogSumExp result = kernels_.log_sum_exp(numbers, count);
    EXPECT_NEAR(result.sum, std::log(sum), 1e-5);
    EXPECT_EQ(result.best, best);
    numbers[count - 1] = numbers[best];
    EXPECT_EQ(kernels_.log_sum_exp(numbers, count).best, best);
    for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      numbers[count / 2] = bad;
      EXPECT_FALSE(std::isfinite(kernels_.log_sum_exp(numbers, count).sum)) << bad;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, RowKernelsTest,
                         ::testing::Combine(::testing::ValuesIn(UsableCpuPaths()),
                                            ::testing::Values(8, 48, 64, 100)));

}  // namespace
}  // namespace docmem::engine
