#include "engine/compression/sketch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/compression/philox.h"
#include "engine/model/testing.h"

namespace docmem::engine {
namespace {

// Known answers that the authors of Philox publish with Random123.
TEST(Philox, HasTheKnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, 0),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

constexpr SketchShape kShape = {.kv_heads = 2, .head_dim = 64, .columns = 48};

TEST(PhiloxSketch, IsStandardNormal) {
  const at::Tensor sketch = PhiloxSketch(0)(3, {.kv_heads = 16, .head_dim = 128, .columns = 48});
  EXPECT_EQ(sketch.sizes(), at::IntArrayRef({16, 128, 48}));
  EXPECT_EQ(sketch.scalar_type(), at::kFloat);
  EXPECT_TRUE(sketch.isfinite().all().item<bool>());
  EXPECT_NEAR(sketch.mean().item<double>(), 0.0, 0.01);
  EXPECT_NEAR(sketch.std().item<double>(), 1.0, 0.01);
  EXPECT_NEAR(sketch.pow(4).mean().item<double>(), 3.0, 0.1);
}

TEST(PhiloxSketch, ElementsDependOnSeedLayerAndPlaceOnly) {
  const at::Tensor sketch = PhiloxSketch(5)(3, kShape);
  EXPECT_TRUE(at::equal(PhiloxSketch(5)(3, kShape), sketch));
  const at::Tensor wider = PhiloxSketch(5)(3, {.kv_heads = 4, .head_dim = 80, .columns = 64});
  EXPECT_TRUE(at::equal(wider.slice(0, 0, 2).slice(1, 0, 64).slice(2, 0, 48), sketch));
  EXPECT_FALSE(at::equal(PhiloxSketch(6)(3, kShape), sketch));
  EXPECT_FALSE(at::equal(PhiloxSketch(5 + (uint64_t{1} << 32))(3, kShape), sketch));
  EXPECT_FALSE(at::equal(PhiloxSketch(5)(4, kShape), sketch));
  EXPECT_FALSE(at::equal(sketch[0], sketch[1]));
}

// Stored caches name the seed, so the numbers themselves must never change. The last bit may depend
// on the C library's logarithm and cosine.
TEST(PhiloxSketch, HasTheNumbersOfItsDefinition) {
  const auto golden = testing::LoadTensors(testing::Reference("scorer/sketch.safetensors"));
  ASSERT_EQ(golden.size(), 3U);
  for (const uint64_t seed : {uint64_t{0}, uint64_t{7}, (uint64_t{5} << 40) + 3}) {
    const at::Tensor& expected = golden.at("seed." + std::to_string(seed));
    for (int64_t layer = 0; layer < expected.size(0); ++layer) {
      const at::Tensor ours =
          PhiloxSketch(seed)(layer, {expected.size(1), expected.size(2), expected.size(3)});
      EXPECT_LE(testing::MaxDifference(ours, expected[layer]), 1e-6) << seed;
    }
  }
}

}  // namespace
}  // namespace docmem::engine
