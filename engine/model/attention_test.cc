#include "engine/model/attention.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "engine/model/testing.h"

namespace docmem::engine {
namespace {

using testing::MaxDifference;

struct Case {
  int64_t rows, heads, groups, keys, dim;
};

struct Inputs {
  at::Tensor q, keys, values;
};

Inputs Random(const Case& c, at::ScalarType dtype) {
  at::manual_seed(7);
  return {at::randn({c.rows, c.heads, c.dim}).to(dtype),
          at::randn({c.groups, c.keys, c.dim}).to(dtype),
          at::randn({c.groups, c.keys, c.dim}).to(dtype)};
}

// The definition, in double. `visible` is the number of keys that row 0 sees; row i sees i more,
// all see all when it is negative.
AttentionPart Expected(const Inputs& in, int64_t visible) {
  const int64_t repeat = in.q.size(1) / in.keys.size(0);
  const at::Tensor q = in.q.to(at::kDouble).transpose(0, 1);
  const at::Tensor k = in.keys.to(at::kDouble).repeat_interleave(repeat, 0);
  const at::Tensor v = in.values.to(at::kDouble).repeat_interleave(repeat, 0);
  at::Tensor scores =
      at::matmul(q, k.transpose(1, 2)) / std::sqrt(static_cast<double>(in.q.size(2)));
  if (visible >= 0) {
    const at::Tensor hidden = at::ones({q.size(1), k.size(1)}, at::kBool).triu(visible);
    scores.masked_fill_(hidden, -std::numeric_limits<double>::infinity());
  }
  return {at::matmul(at::softmax(scores, -1), v).transpose(0, 1),
          at::logsumexp(scores, -1).transpose(0, 1)};
}

class Attention : public ::testing::TestWithParam<std::tuple<Case, at::ScalarType>> {
 protected:
  const Case& shape() const { return std::get<0>(GetParam()); }
  at::ScalarType dtype() const { return std::get<1>(GetParam()); }
  double tolerance() const { return dtype() == at::kFloat ? 2e-6 : 2e-2; }

  void ExpectEqual(const AttentionPart& part, const AttentionPart& expected) const {
    EXPECT_EQ(part.out.scalar_type(), dtype());
    EXPECT_EQ(part.lse.scalar_type(), at::kFloat);
    ASSERT_EQ(part.out.sizes(), expected.out.sizes());
    ASSERT_EQ(part.lse.sizes(), expected.lse.sizes());
    EXPECT_LE(MaxDifference(part.out, expected.out), tolerance());
    EXPECT_LE(MaxDifference(part.lse, expected.lse), tolerance());
  }

  c10::InferenceMode inference_;
  Inputs in_ = Random(shape(), dtype());
};

TEST_P(Attention, AllRowsSeeAllKeys) {
  ExpectEqual(AttendAll(in_.q, in_.keys, in_.values), Expected(in_, -1));
}

TEST_P(Attention, CausalRowsSeeTheKeysUpToTheirOwn) {
  const int64_t offset = shape().keys - shape().rows;
  ExpectEqual(AttendCausal(in_.q, in_.keys, in_.values, offset), Expected(in_, offset + 1));
}

TEST_P(Attention, KeysBehindTheRowsAreNotSeen) {
  const int64_t offset = std::max<int64_t>(0, shape().keys - shape().rows - 3);
  ExpectEqual(AttendCausal(in_.q, in_.keys, in_.values, offset), Expected(in_, offset + 1));
}

TEST_P(Attention, JoinedPartsEqualAttentionOverTheUnion) {
  std::vector<AttentionPart> parts;
  const int64_t cuts[] = {0, 1, shape().keys / 2, shape().keys};
  for (int i = 0; i < 3; ++i) {
    parts.push_back(AttendAll(in_.q, in_.keys.narrow(1, cuts[i], cuts[i + 1] - cuts[i]),
                              in_.values.narrow(1, cuts[i], cuts[i + 1] - cuts[i])));
  }
  EXPECT_LE(MaxDifference(JoinParts(parts), Expected(in_, -1).out), tolerance());
}

TEST_P(Attention, ViewsOfLargerTensorsAreReadInPlace) {
  const at::Tensor padded_keys = at::full({shape().groups, shape().keys + 5, shape().dim}, 9.0);
  at::Tensor keys = padded_keys.to(dtype()).clone();
  at::Tensor values = keys.clone();
  keys.narrow(1, 2, shape().keys).copy_(in_.keys);
  values.narrow(1, 2, shape().keys).copy_(in_.values);
  ExpectEqual(AttendAll(in_.q, keys.narrow(1, 2, shape().keys), values.narrow(1, 2, shape().keys)),
              Expected(in_, -1));
}

const auto kDtypes = ::testing::Values(at::kFloat, at::kBFloat16);

INSTANTIATE_TEST_SUITE_P(
    Shapes, Attention,
    ::testing::Combine(::testing::Values(Case{1, 9, 3, 700, 64}, Case{7, 4, 2, 7, 64},
                                         Case{33, 4, 4, 150, 16}, Case{130, 8, 2, 1100, 128},
                                         Case{1, 4, 2, 5, 64}),
                       kDtypes));

class AttentionToFewKeys : public Attention {};

TEST_P(AttentionToFewKeys, AllRowsSeeAllKeys) {
  ExpectEqual(AttendAll(in_.q, in_.keys, in_.values), Expected(in_, -1));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionToFewKeys,
    ::testing::Combine(::testing::Values(Case{1, 4, 2, 1, 64}, Case{5, 4, 1, 3, 64}), kDtypes));

TEST(AttentionParts, PartsWithDistantScoresJoinWithoutOverflow) {
  const c10::InferenceMode inference;
  Inputs in = Random({2, 2, 1, 6, 16}, at::kFloat);
  in.keys.narrow(1, 0, 3).mul_(100.0);
  const AttentionPart parts[] = {
      AttendAll(in.q, in.keys.narrow(1, 0, 3), in.values.narrow(1, 0, 3)),
      AttendAll(in.q, in.keys.narrow(1, 3, 3), in.values.narrow(1, 3, 3))};
  EXPECT_LE(MaxDifference(JoinParts(parts), Expected(in, -1).out), 1e-5);
}

TEST(AttentionParts, OnePartComesBackAsItIs) {
  const c10::InferenceMode inference;
  const Inputs in = Random({2, 2, 1, 6, 16}, at::kFloat);
  const AttentionPart part = AttendAll(in.q, in.keys, in.values);
  EXPECT_TRUE(JoinParts({&part, 1}).is_same(part.out));
}

}  // namespace
}  // namespace docmem::engine
