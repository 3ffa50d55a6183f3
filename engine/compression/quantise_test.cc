#include "engine/compression/quantise.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace docmem::engine {
namespace {

KeptRows Rows() {
  at::manual_seed(3);
  KeptRows rows = {.keys = at::randn({7, 6}),
                   .values = at::randn({7, 6}),
                   .positions = at::arange(7, at::kInt),
                   .offsets = at::tensor({0, 4, 4, 7}, at::kLong)};
  rows.keys.select(1, 2).mul_(100.0);  // an outlier channel
  rows.keys.select(1, 4).zero_();
  rows.values.select(0, 5).zero_();
  return rows;
}

TEST(QuantiseTest, NumbersAreWithinHalfAStepOfTheirOwnScale) {
  const KeptRows rows = Rows(), quantised = QuantiseKv(rows);
  const int64_t heads[] = {0, 0, 0, 0, 2, 2, 2};
  for (int64_t row = 0; row < 7; ++row) {
    const at::Tensor scales = quantised.key_scales.select(0, heads[row]);
    const at::Tensor key = quantised.keys.select(0, row).to(at::kFloat) * scales;
    EXPECT_TRUE((key - rows.keys.select(0, row)).abs().le(scales * 0.5001).all().item<bool>());
    const at::Tensor scale = quantised.value_scales.select(0, row);
    const at::Tensor value = quantised.values.select(0, row).to(at::kFloat) * scale;
    EXPECT_TRUE((value - rows.values.select(0, row)).abs().le(scale * 0.5001).all().item<bool>());
  }
}

TEST(QuantiseTest, ScalesAreTheLargestNumberBy127AndZerosStayZero) {
  const KeptRows rows = Rows(), quantised = QuantiseKv(rows);
  EXPECT_TRUE(at::allclose(quantised.key_scales.select(0, 0),
                           rows.keys.narrow(0, 0, 4).abs().amax(0) / 127.0));
  EXPECT_TRUE(quantised.key_scales.select(0, 1).eq(0).all().item<bool>()) << "a head without rows";
  EXPECT_TRUE(quantised.keys.select(1, 4).eq(0).all().item<bool>());
  EXPECT_EQ(quantised.value_scales[5].item<float>(), 0.0F);
  EXPECT_EQ(quantised.values.abs().max().item<int8_t>(), 127);
}

}  // namespace
}  // namespace docmem::engine
