#include "engine/kernels/packed_matrix.h"

#include <gtest/gtest.h>

#include "engine/kernels/testing.h"

namespace docmem::engine {
namespace {

using testing::Numbers;

TEST(PackedMatrixTest, MatricesStandBehindEachOtherInPanelsOf16Outputs) {
  std::mt19937 random(1);
  Numbers first(20, 6, NumberType::kFloat32, &random), second(3, 6, NumberType::kBfloat16, &random);
  const Matrix matrices[] = {first.matrix(), second.matrix()};
  const PackedMatrix packed(matrices, NumberType::kBfloat16);
  EXPECT_EQ(packed.outputs(), 23);
  EXPECT_EQ(packed.panels(), 2);
  EXPECT_EQ(packed.padded_inputs(), 32);
  const auto number = [&](int64_t output, int64_t input) {
    const auto* panel = reinterpret_cast<const uint16_t*>(packed.Panel(output / 16));
    return FromBfloat16(panel[(input / 2 * 16 + output % 16) * 2 + input % 2]);
  };
  EXPECT_EQ(number(17, 5), first.At(17, 5));
  EXPECT_EQ(number(21, 2), second.At(1, 2));
  EXPECT_EQ(number(23, 0), 0.0F) << "outputs that aren't there are 0";
  EXPECT_EQ(number(0, 6), 0.0F) << "inputs that aren't there are 0";
}

TEST(PackedMatrixTest, Int8NumbersAreWithinHalfAStepAndZeroRowsStayZero) {
  std::mt19937 random(2);
  Numbers weights(2, 40, NumberType::kFloat32, &random);
  for (int64_t i = 0; i < 40; ++i) static_cast<float*>(weights.matrix().Row(1))[i] = 0.0F;
  const Matrix matrix = weights.matrix();
  const PackedMatrix packed({&matrix, 1}, NumberType::kInt8);
  const auto* panel = reinterpret_cast<const int8_t*>(packed.Panel(0));
  for (int64_t i = 0; i < 40; ++i) {
    const float scale = packed.scales()[0];
    EXPECT_NEAR(panel[(i / 2 * 16) * 2 + i % 2] * scale, weights.Now(0, i), scale * 0.501F);
    EXPECT_EQ(panel[(i / 2 * 16 + 1) * 2 + i % 2], 0);
  }
  EXPECT_EQ(packed.scales()[1], 0.0F);
}

}  // namespace
}  // namespace docmem::engine
