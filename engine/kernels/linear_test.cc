#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "engine/kernels/kernels.h"
#include "engine/kernels/testing.h"

namespace docmem::engine {
namespace {

using testing::Numbers;

class LinearTest : public ::testing::TestWithParam<CpuPath> {
 protected:
  const KernelTable& kernels_ = KernelsOf(GetParam());
  std::mt19937 random_{7};
};

struct Case {
  int64_t rows, inputs, outputs;
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const int64_t inputs : {8, 9, 48, 96, 576}) {
    for (const int64_t outputs : {16, 33, 40}) {
      for (const int64_t rows : {1, 3, 7, 16, 20, 33, 70}) cases.push_back({rows, inputs, outputs});
    }
  }
  return cases;
}

// Largest difference from sums in fp64, relative to the largest sum.
double Error(Numbers& w, Numbers& x, const std::vector<float>& bias, const std::vector<float>& y) {
  const Matrix wm = w.matrix(), xm = x.matrix();
  double worst = 0.0, largest = 0.0;
  for (int64_t row = 0; row < xm.rows; ++row) {
    for (int64_t output = 0; output < wm.rows; ++output) {
      double sum = bias[static_cast<size_t>(output)];
      for (int64_t i = 0; i < wm.columns; ++i) sum += x.At(row, i) * w.At(output, i);
      const float got = y[static_cast<size_t>(row * wm.rows + output)];
      worst = std::max(worst, std::abs(sum - got));
      largest = std::max(largest, std::abs(sum));
    }
  }
  return worst / largest;
}

TEST_P(LinearTest, SumsAreThoseOfFp64ForEveryShapeAndType) {
  for (const Case& c : Cases()) {
    for (const NumberType type : {NumberType::kFloat32, NumberType::kBfloat16, NumberType::kInt8}) {
      for (const NumberType x_type : {NumberType::kFloat32, NumberType::kBfloat16}) {
        Numbers w(c.outputs, c.inputs, NumberType::kBfloat16, &random_);
        Numbers x(c.rows, c.inputs, x_type, &random_);
        std::vector<float> bias(static_cast<size_t>(c.outputs), 0.25F);
        std::vector<float> y(static_cast<size_t>(c.rows * c.outputs));
        const Matrix matrix = w.matrix();
        const PackedMatrix packed({&matrix, 1}, type);
        const Matrix out = {y.data(), NumberType::kFloat32, c.rows, c.outputs, c.outputs};
        kernels_.linear({&packed, bias.data(), x.matrix(), out, 0, packed.panels()});
        const double bound = type == NumberType::kInt8 ? 0.03 : 1e-5;
        EXPECT_LE(Error(w, x, bias, y), bound)
            << c.rows << " rows, " << c.inputs << " inputs, " << c.outputs << " outputs, type "
            << static_cast<int>(type);
      }
    }
  }
}

TEST_P(LinearTest, ARowHasTheSameBitsAloneAndAmongOthersAndForAnyPanels) {
  for (const Case& c : Cases()) {
    for (const NumberType type : {NumberType::kFloat32, NumberType::kBfloat16, NumberType::kInt8}) {
      const NumberType x_type =
          type == NumberType::kFloat32 ? NumberType::kFloat32 : NumberType::kBfloat16;
      Numbers w(c.outputs, c.inputs, NumberType::kBfloat16, &random_);
      Numbers x(c.rows, c.inputs, x_type, &random_);
      const Matrix matrix = w.matrix();
      const PackedMatrix packed({&matrix, 1}, type);
      std::vector<float> all(static_cast<size_t>(c.rows * c.outputs)), one(all.size());
      const auto out = [&](std::vector<float>& y) {
        return Matrix{y.data(), NumberType::kFloat32, c.rows, c.outputs, c.outputs};
      };
      kernels_.linear({&packed, nullptr, x.matrix(), out(all), 0, packed.panels()});
      for (int64_t row = 0; row < c.rows; ++row) {
        for (int64_t panel = 0; panel < packed.panels(); ++panel) {
          kernels_.linear(
              {&packed, nullptr, x.matrix().Rows(row, 1), out(one).Rows(row, 1), panel, 1});
        }
      }
      EXPECT_EQ(std::memcmp(all.data(), one.data(), all.size() * sizeof(float)), 0)
          << c.rows << " rows, " << c.inputs << " inputs, " << c.outputs << " outputs";
    }
  }
}

TEST_P(LinearTest, ResultsInBf16AreTheFp32OnesRounded) {
  Numbers w(40, 96, NumberType::kBfloat16, &random_);
  Numbers x(5, 96, NumberType::kBfloat16, &random_);
  const Matrix matrix = w.matrix();
  const PackedMatrix packed({&matrix, 1}, NumberType::kBfloat16);
  std::vector<float> wide(200);
  std::vector<uint16_t> narrow(200);
  const Matrix x_rows = x.matrix();
  kernels_.linear({&packed, nullptr, x_rows, {wide.data(), NumberType::kFloat32, 5, 40, 40}, 0, 3});
  kernels_.linear(
      {&packed, nullptr, x_rows, {narrow.data(), NumberType::kBfloat16, 5, 40, 40}, 0, 3});
  for (size_t i = 0; i < wide.size(); ++i) EXPECT_EQ(narrow[i], ToBfloat16(wide[i]));
}

constexpr std::pair<NumberType, int64_t> kAdapters[] = {
    {NumberType::kFloat32, 5},   {NumberType::kBfloat16, 5}, {NumberType::kFloat32, 16},
    {NumberType::kBfloat16, 16}, {NumberType::kFloat32, 24}, {NumberType::kBfloat16, 3}};

TEST_P(LinearTest, AnAdapterAddsItsScaledProductForAnySplitOfTheWork) {
  for (const auto& [type, rank] : kAdapters) {
    const int64_t rows = 3, inputs = 40, outputs = 56;
    Numbers a(rank, inputs, type, &random_), b(outputs, rank, type, &random_);
    Numbers x(rows, inputs, type, &random_), y(rows, outputs, type, &random_);
    std::vector<float> down(static_cast<size_t>(rows * rank));
    const LoraArgs args = {a.matrix(), b.matrix(), 0.5F, x.matrix(), down.data(), y.matrix()};
    kernels_.lora_down(args, 0, 2);
    kernels_.lora_down(args, 2, rank - 2);
    kernels_.lora_up(args, 0, 16);
    kernels_.lora_up(args, 16, outputs - 16);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t output = 0; output < outputs; ++output) {
        double sum = 0.0, size = 1.0;
        for (int64_t r = 0; r < rank; ++r) {
          double h = 0.0;
          for (int64_t i = 0; i < inputs; ++i) h += a.At(r, i) * x.At(row, i);
          sum += h * b.At(output, r);
          size += std::abs(h * b.At(output, r));
        }
        const double wanted = y.At(row, output) + 0.5 * sum;
        const double bound =
            type == NumberType::kFloat32 ? 1e-4 : 0.005 * size + 0.005 * std::abs(wanted);
        EXPECT_NEAR(y.Now(row, output), wanted, bound);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, LinearTest, ::testing::ValuesIn(UsableCpuPaths()),
                         testing::PathTestName);

}  // namespace
}  // namespace docmem::engine
