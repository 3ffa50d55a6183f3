#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "engine/kernels/kernels.h"
#include "engine/kernels/testing.h"

namespace docmem::engine {
namespace {

using testing::Numbers;

constexpr int64_t kRepeat = 3;

// Queries, cached and own rows of one KV head.
struct Scene {
  Scene(int64_t rows_, int64_t dim_, int64_t cached_rows, NumberType type_, std::mt19937* random)
      : rows(rows_),
        dim(dim_),
        cached(cached_rows),
        type(type_),
        q(rows_, kRepeat * dim_, type_, random),
        keys(cached_rows + offset + rows_, dim_, type_, random),
        values(cached_rows + offset + rows_, dim_, type_, random),
        out(rows_, kRepeat * dim_, type_, random) {}

  AttendArgs Args() {
    const auto span = [&](int64_t first, int64_t count) {
      return KvSpan{keys.matrix().Row(first), values.matrix().Row(first), count, type};
    };
    own = {span(cached, offset + rows), rows, offset};
    return {.q = q.matrix(),
            .out = out.matrix(),
            .repeat = kRepeat,
            .dim = dim,
            .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim))),
            .cached = span(0, cached),
            .own = &own,
            .sequences = 1};
  }

  // Some of the rows alone.
  AttendArgs Part(int64_t first, int64_t count) {
    AttendArgs args = Args();
    args.q = args.q.Rows(first, count);
    args.out = args.out.Rows(first, count);
    own.queries = count;
    own.offset += first;
    own.kv.rows = own.offset + count;
    return args;
  }

  std::vector<std::byte> Out() {
    const auto* const begin = static_cast<const std::byte*>(out.matrix().data);
    return {begin, begin + static_cast<size_t>(rows * kRepeat * dim) * BytesOf(type)};
  }

  // Largest difference from the same in fp64.
  double Error() const {
    double worst = 0.0;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t head = 0; head < kRepeat; ++head) worst = std::max(worst, ErrorOf(row, head));
    }
    return worst;
  }

  double ErrorOf(int64_t row, int64_t head) const {
    const int64_t seen = cached + offset + row + 1;
    std::vector<double> weights;
    double total = 0.0;
    for (int64_t key = 0; key < seen; ++key) {
      double score = 0.0;
      for (int64_t d = 0; d < dim; ++d) score += q.At(row, head * dim + d) * keys.At(key, d);
      weights.push_back(std::exp(score / std::sqrt(static_cast<double>(dim))));
      total += weights.back();
    }
    double worst = 0.0;
    for (int64_t d = 0; d < dim; ++d) {
      double sum = 0.0;
      for (int64_t key = 0; key < seen; ++key) {
        sum += weights[static_cast<size_t>(key)] * values.At(key, d);
      }
      worst = std::max(worst, std::abs(sum / total - out.Now(row, head * dim + d)));
    }
    return worst;
  }

  static constexpr int64_t offset = 7;
  int64_t rows, dim, cached;
  NumberType type;
  Numbers q, keys, values, out;
  OwnRows own;
};

class AttendTest : public ::testing::TestWithParam<CpuPath> {
 protected:
  const KernelTable& kernels_ = KernelsOf(GetParam());
  std::mt19937 random_{11};
};

TEST_P(AttendTest, IsSoftmaxAttentionOverCachedAndOwnRowsTogether) {
  for (const int64_t dim : {8, 16, 64, 80, 128, 256}) {
    for (const int64_t cached : {0, 5, 64, 200}) {
      for (const int64_t rows : {1, 3, 20, 70}) {
        for (const NumberType type : {NumberType::kFloat32, NumberType::kBfloat16}) {
          Scene scene(rows, dim, cached, type, &random_);
          kernels_.attend(scene.Args());
          EXPECT_LE(scene.Error(), type == NumberType::kFloat32 ? 3e-6 : 0.02)
              << dim << " wide, " << cached << " cached, " << rows << " rows";
        }
      }
    }
  }
}

TEST_P(AttendTest, ARowHasTheSameBitsAloneAndAmongOthers) {
  Scene scene(40, 64, 100, NumberType::kBfloat16, &random_);
  kernels_.attend(scene.Args());
  const std::vector<std::byte> together = scene.Out();
  std::memset(scene.out.matrix().data, 0, together.size());
  for (int64_t row = 0; row < 40; ++row) {
    kernels_.attend(scene.Part(row, 1));
  }
  EXPECT_EQ(together, scene.Out());
}

TEST_P(AttendTest, APrefillsRowsAttendAsOthersDo) {
  if (kernels_.attend_causal == nullptr) GTEST_SKIP() << "the path leaves it to libtorch";
  for (const int64_t dim : {8, 15, 16, 64, 80, 128, 256}) {
    for (const int64_t rows : {1, 3, 20, 57, 70, 150}) {
      Scene scene(rows, dim, 0, NumberType::kBfloat16, &random_);
      kernels_.attend_causal(scene.Args());
      EXPECT_LE(scene.Error(), 0.02) << dim << " wide, " << rows << " rows";
    }
  }
}

TEST_P(AttendTest, APrefillsRowHasTheSameBitsAloneAndAmongOthers) {
  if (kernels_.attend_causal == nullptr) GTEST_SKIP() << "the path leaves it to libtorch";
  Scene scene(140, 64, 0, NumberType::kBfloat16, &random_);
  kernels_.attend_causal(scene.Args());
  const std::vector<std::byte> together = scene.Out();
  for (const int64_t count : {1, 3, 50}) {
    std::memset(scene.out.matrix().data, 0, together.size());
    for (int64_t row = 0; row < 140; row += count) {
      kernels_.attend_causal(scene.Part(row, std::min(count, 140 - row)));
    }
    EXPECT_EQ(together, scene.Out()) << count << " rows at a time";
  }
}

TEST_P(AttendTest, SequencesOnOneCacheHaveTheSameBitsAloneAndTogether) {
  Scene scene(9, 64, 150, NumberType::kBfloat16, &random_);
  Numbers own_keys(90, 64, NumberType::kBfloat16, &random_);
  Numbers own_values(90, 64, NumberType::kBfloat16, &random_);
  const auto sequence = [&](int64_t first, int64_t queries, int64_t offset) {
    return OwnRows{{own_keys.matrix().Row(first), own_values.matrix().Row(first), offset + queries,
                    NumberType::kBfloat16},
                   queries,
                   offset};
  };
  const OwnRows own[] = {sequence(0, 1, 70), sequence(10, 6, 0), sequence(30, 2, 20)};
  AttendArgs args = scene.Args();
  args.own = own;
  args.sequences = 3;
  kernels_.attend(args);
  const std::vector<std::byte> together = scene.Out();
  std::memset(scene.out.matrix().data, 0, together.size());
  int64_t row = 0;
  for (const OwnRows& alone : own) {
    AttendArgs one = args;
    one.q = args.q.Rows(row, alone.queries);
    one.out = args.out.Rows(row, alone.queries);
    one.own = &alone;
    one.sequences = 1;
    kernels_.attend(one);
    row += alone.queries;
  }
  EXPECT_EQ(together, scene.Out());
}

TEST_P(AttendTest, Int8KeysAndValuesAreTheirScaledNumbers) {
  const int64_t dim = 64, cached = 150;
  std::vector<int8_t> keys, values;
  for (int64_t i = 0; i < cached * dim; ++i) {
    keys.push_back(static_cast<int8_t>(static_cast<int64_t>(random_() % 255) - 127));
    values.push_back(static_cast<int8_t>(static_cast<int64_t>(random_() % 255) - 127));
  }
  std::vector<float> key_scales, value_scales, wide_keys, wide_values;
  for (int64_t i = 0; i < dim; ++i) key_scales.push_back(0.01F + 1e-4F * static_cast<float>(i));
  for (int64_t i = 0; i < cached; ++i)
    value_scales.push_back(0.02F - 1e-4F * static_cast<float>(i));
  for (int64_t i = 0; i < cached * dim; ++i) {
    const auto at = static_cast<size_t>(i);
    wide_keys.push_back(static_cast<float>(keys[at]) * key_scales[at % static_cast<size_t>(dim)]);
    wide_values.push_back(static_cast<float>(values[at]) *
                          value_scales[at / static_cast<size_t>(dim)]);
  }
  Scene scene(2, dim, 0, NumberType::kFloat32, &random_);
  AttendArgs args = scene.Args();
  args.cached = {keys.data(),       values.data(),     cached,
                 NumberType::kInt8, key_scales.data(), value_scales.data()};
  kernels_.attend(args);
  std::vector<float> quantised(2 * kRepeat * dim);
  std::memcpy(quantised.data(), scene.out.matrix().data, quantised.size() * sizeof(float));
  args.cached = {wide_keys.data(), wide_values.data(), cached, NumberType::kFloat32};
  kernels_.attend(args);
  EXPECT_EQ(std::memcmp(quantised.data(), scene.out.matrix().data, quantised.size() * 4), 0);
}

TEST_P(AttendTest, ANanIsNeverHidden) {
  Scene scene(1, 64, 30, NumberType::kFloat32, &random_);
  static_cast<float*>(scene.keys.matrix().Row(3))[0] = std::numeric_limits<float>::quiet_NaN();
  kernels_.attend(scene.Args());
  EXPECT_TRUE(std::isnan(scene.out.Now(0, 0)));
}

TEST_P(AttendTest, ANanIsNeverHiddenInAPrefill) {
  if (kernels_.attend_causal == nullptr) GTEST_SKIP() << "the path leaves it to libtorch";
  Scene scene(70, 64, 0, NumberType::kBfloat16, &random_);
  static_cast<uint16_t*>(scene.keys.matrix().Row(3))[0] = 0x7fc0;
  kernels_.attend_causal(scene.Args());
  EXPECT_TRUE(std::isnan(scene.out.Now(0, 0)));
  EXPECT_TRUE(std::isnan(scene.out.Now(69, 0)));
}

TEST_P(AttendTest, ScoresFarFromZeroNeitherOverflowNorVanish) {
  Scene scene(2, 64, 100, NumberType::kFloat32, &random_);
  auto* q = static_cast<float*>(scene.q.matrix().data);
  for (int64_t i = 0; i < 2 * kRepeat * 64; ++i) q[i] *= 100.0F;
  kernels_.attend(scene.Args());
  for (int64_t i = 0; i < kRepeat * 64; ++i) EXPECT_TRUE(std::isfinite(scene.out.Now(0, i)));
}

INSTANTIATE_TEST_SUITE_P(Paths, AttendTest, ::testing::ValuesIn(UsableCpuPaths()),
                         testing::PathTestName);

}  // namespace
}  // namespace docmem::engine
