#include "engine/compression/scorer_compactor.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "engine/model/testing.h"

namespace docmem::engine {
namespace {

using testing::ErrorOf;
using testing::MaxDifference;

constexpr int64_t kContext = 600, kHead = 5, kHeads = 4, kGroups = 2, kDim = 64;

ModelConfig Config() { return {.query_heads = kHeads, .kv_heads = kGroups, .head_dim = kDim}; }

struct Layer {
  at::Tensor queries = at::randn({kContext, kHeads, kDim}) * 0.3;
  at::Tensor pre_rope_keys = at::randn({kContext, kGroups, kDim});
  at::Tensor keys = at::randn({kGroups, kContext, kDim});
  at::Tensor values = at::randn({kGroups, kContext, kDim});
};

std::unique_ptr<Scorer> Make(uint64_t seed = 0) {
  return MakeScorer(Config(), {.context_tokens = kContext, .head_tokens = kHead, .seed = seed});
}

// Gives the layer to the scorer in pieces of `rows` rows.
std::vector<at::Tensor> Score(Scorer* scorer, const Layer& layer, int64_t rows,
                              const std::vector<double>& blends) {
  for (int64_t first = 0; first < kContext; first += rows) {
    const int64_t count = std::min(rows, kContext - first);
    scorer->Add({first, layer.queries.narrow(0, first, count),
                 layer.pre_rope_keys.narrow(0, first, count),
                 layer.keys.narrow(1, 0, first + count), layer.values.narrow(1, 0, first + count)});
  }
  return scorer->Finish(7, blends);
}

class CompactorScorerTest : public ::testing::Test {
 protected:
  c10::InferenceMode inference_;
  at::Generator seeded_ = [] {
    at::manual_seed(3);
    return at::Generator();
  }();
  Layer layer_;
};

TEST_F(CompactorScorerTest, PiecesDontChangeTheScores) {
  const at::Tensor whole = Score(Make().get(), layer_, kContext, {0.5})[0];
  EXPECT_EQ(whole.sizes(), at::IntArrayRef({kGroups, kContext - 8 - 4}));
  for (const int64_t rows : {1, 7, 256, 512}) {
    EXPECT_TRUE(at::equal(Score(Make().get(), layer_, rows, {0.5})[0], whole)) << rows;
  }
}

TEST_F(CompactorScorerTest, LayersDontInfluenceEachOther) {
  const std::unique_ptr<Scorer> scorer = Make();
  const at::Tensor first = Score(scorer.get(), layer_, 100, {0.5})[0];
  Score(scorer.get(), Layer(), 100, {0.5});
  EXPECT_TRUE(at::equal(Score(scorer.get(), layer_, 100, {0.5})[0], first));
}

TEST_F(CompactorScorerTest, BlendWeighsTheLeverage) {
  const std::vector<at::Tensor> scores = Score(Make().get(), layer_, kContext, {0.0, 1.0, 0.25});
  const at::Tensor leverage = scores[1] - scores[0];
  EXPECT_NEAR(leverage.mean().item<double>(), 0.0, 1e-4);
  EXPECT_NEAR(leverage.std().item<double>(), 1.0, 1e-4);
  EXPECT_LE(MaxDifference(scores[2], scores[0] + leverage * 0.25), 1e-5);
}

TEST_F(CompactorScorerTest, SeedChangesTheLeverageOnly) {
  const at::Tensor a = Score(Make(0).get(), layer_, kContext, {0.0, 1.0})[0];
  const std::vector<at::Tensor> b = Score(Make(1).get(), layer_, kContext, {0.0, 1.0});
  EXPECT_TRUE(at::equal(a, b[0]));
  EXPECT_FALSE(at::equal(Score(Make(0).get(), layer_, kContext, {1.0})[0], b[1]));
}

TEST_F(CompactorScorerTest, NumbersThatArentFiniteNameTheLayer) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Layer keys = layer_, values = layer_;
    keys.pre_rope_keys =
        layer_.pre_rope_keys.clone().index_fill_(0, at::tensor({50}, at::kLong), bad);
    values.values = layer_.values.clone().index_fill_(1, at::tensor({50}, at::kLong), bad);
    for (const Layer& layer : {keys, values}) {
      const auto error = ErrorOf([&] { Score(Make().get(), layer, kContext, {0.5}); });
      ASSERT_TRUE(error.has_value());
      EXPECT_EQ(error->kind(), ErrorKind::kInternal);
      EXPECT_EQ(error->field(), "layer 7");
    }
  }
}

TEST_F(CompactorScorerTest, EqualKeysGetJitterAndEqualScores) {
  const at::Tensor keys = at::ones({kGroups, 100, kDim});
  const at::Tensor leverage = CompactorLeverage(keys, PhiloxSketch(0)(0, {kGroups, kDim, 48}), 0);
  EXPECT_TRUE(leverage.isfinite().all().item<bool>());
  EXPECT_LE(leverage.abs().max().item<double>(), 1e-6);
}

TEST_F(CompactorScorerTest, JitterGrowsUntilAHugeSingularGramFactorises) {
  // Rank 1 and so large that 1e-2 is lost in rounding; a regular head beside it gets the same
  // jitter.
  at::Tensor keys = at::randn({2, 200, kDim});
  keys[0] = at::arange(200, at::kFloat).unsqueeze(1) * at::randn({1, kDim}) * 0.3;
  const at::Tensor leverage = CompactorLeverage(keys, PhiloxSketch(0)(0, {2, kDim, 48}), 0);
  EXPECT_TRUE(leverage.isfinite().all().item<bool>());
  EXPECT_GE(leverage.min().item<double>(), 0.0);
}

TEST_F(CompactorScorerTest, GramThatNoJitterHelpsNamesTheLayer) {
  const at::Tensor keys =
      at::arange(200, at::kFloat).view({1, 200, 1}) * at::randn({1, 1, kDim}) * 1e6;
  const auto error =
      ErrorOf([&] { CompactorLeverage(keys, PhiloxSketch(0)(0, {1, kDim, 48}), 12); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->kind(), ErrorKind::kInternal);
  EXPECT_EQ(error->field(), "layer 12");
}

TEST_F(CompactorScorerTest, LeverageAgreesWithDoublePrecisionAcrossBlocks) {
  const at::Tensor keys = at::randn({1, 9000, kDim});
  const at::Tensor sketch = PhiloxSketch(0)(0, {1, kDim, 48});
  const at::Tensor k = keys.to(at::kDouble);
  const at::Tensor x = at::matmul(k - k.mean(1, true), sketch.to(at::kDouble) / std::sqrt(48.0));
  const at::Tensor gram = at::matmul(x.transpose(1, 2), x) + 1e-2 * at::eye(48, at::kDouble);
  const at::Tensor expected = (at::matmul(x, at::inverse(gram)) * x).sum(-1);
  EXPECT_LE(MaxDifference(CompactorLeverage(keys, sketch, 0), expected), 1e-5);
}

TEST_F(CompactorScorerTest, ChunkAttentionSumsToItsQueries) {
  const at::Tensor q = at::randn({256, 4, 16});
  const at::Tensor k = at::randn({2, 256, 16});
  const at::Tensor full = CompactorChunkAttention(q, k);
  EXPECT_LE(MaxDifference(full.sum(1), at::full({4}, 256.0)), 1e-3);
}

TEST_F(CompactorScorerTest, ShortChunkCountsAsPadded) {
  const at::Tensor q = at::randn({100, 2, 16});
  const at::Tensor k = at::randn({1, 100, 16});
  const at::Tensor scores = at::matmul(q.transpose(0, 1), k.transpose(1, 2)).exp();
  const at::Tensor mass = scores / (scores.sum(-1, true) + 156.0);
  EXPECT_LE(MaxDifference(CompactorChunkAttention(q, k), mass.sum(1) + 156.0 / 256.0), 1e-4);
}

TEST_F(CompactorScorerTest, PoolDividesByThreeAlsoAtTheEnds) {
  const at::Tensor pooled = CompactorPool(at::tensor({3.0F, 6.0F, 9.0F, 0.0F}).view({1, 4}));
  EXPECT_LE(MaxDifference(pooled, at::tensor({3.0F, 6.0F, 5.0F, 3.0F})), 1e-6);
}

TEST_F(CompactorScorerTest, ZScoreHasAFloorForItsDeviation) {
  EXPECT_EQ(ZScore(at::full({1, 1}, 5.0)).item<double>(), 0.0);
  EXPECT_EQ(ZScore(at::full({2, 3}, 5.0)).abs().max().item<double>(), 0.0);
  const at::Tensor z = ZScore(at::tensor({1.0F, 2.0F, 3.0F}));
  EXPECT_LE(MaxDifference(z, at::tensor({-1.0F, 0.0F, 1.0F})), 1e-6);
}

}  // namespace
}  // namespace docmem::engine
