#include "engine/compression/scorer_compactor_vllm.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "engine/model/testing.h"

namespace docmem::engine {
namespace {

using testing::ErrorOf;
using testing::MaxDifference;

constexpr int64_t kContext = 700, kHead = 5, kHeads = 4, kGroups = 2, kDim = 64;
constexpr int64_t kMiddle = kContext - kVllmFirstTokens - kVllmLastTokens;

struct Layer {
  at::Tensor queries = at::randn({kContext, kHeads, kDim}) * 0.3;
  at::Tensor pre_rope_keys = at::randn({kContext, kGroups, kDim});
  at::Tensor keys = at::randn({kGroups, kContext, kDim});
};

std::unique_ptr<Scorer> Make(uint64_t seed = 0) {
  const ModelConfig config = {.query_heads = kHeads, .kv_heads = kGroups, .head_dim = kDim};
  return MakeScorer(config, {.profile = Profile::kCompactorVllm,
                             .context_tokens = kContext,
                             .head_tokens = kHead,
                             .seed = seed});
}

std::vector<at::Tensor> Score(Scorer* scorer, const Layer& layer, int64_t rows,
                              const std::vector<double>& blends) {
  for (int64_t first = 0; first < kContext; first += rows) {
    const int64_t count = std::min(rows, kContext - first);
    scorer->Add({.first_row = first,
                 .queries = layer.queries.narrow(0, first, count),
                 .pre_rope_keys = layer.pre_rope_keys.narrow(0, first, count),
                 .keys = layer.keys.narrow(1, 0, first + count)});
  }
  return scorer->Finish(7, blends);
}

class CompactorVllmScorerTest : public ::testing::Test {
 protected:
  void SetUp() override { at::manual_seed(3); }

  c10::InferenceMode inference_;
};

TEST_F(CompactorVllmScorerTest, PiecesAndEarlierLayersDontChangeTheScores) {
  const Layer layer;
  const at::Tensor whole = Score(Make().get(), layer, kContext, {0.5})[0];
  EXPECT_EQ(whole.sizes(), at::IntArrayRef({kGroups, kMiddle}));
  const std::unique_ptr<Scorer> scorer = Make();
  for (const int64_t rows : {1, 37, 128, 512}) {
    EXPECT_TRUE(at::equal(Score(scorer.get(), layer, rows, {0.5})[0], whole)) << rows;
    Score(scorer.get(), Layer(), 100, {0.5});
  }
}

TEST_F(CompactorVllmScorerTest, AllHeadsShareOneSketchThatTheSeedDecides) {
  Layer layer;
  layer.pre_rope_keys.select(1, 1).copy_(layer.pre_rope_keys.select(1, 0));
  const std::vector<at::Tensor> scores = Score(Make(0).get(), layer, kContext, {0.0, 1.0});
  const at::Tensor leverage = scores[1] - scores[0];
  EXPECT_LE(MaxDifference(leverage[0], leverage[1]), 1e-5);
  const std::vector<at::Tensor> other = Score(Make(1).get(), layer, kContext, {0.0, 1.0});
  EXPECT_TRUE(at::equal(other[0], scores[0]));
  EXPECT_FALSE(at::equal(other[1], scores[1]));
}

TEST_F(CompactorVllmScorerTest, TheProtectedTokensAreLookedAtButNotScored) {
  const Layer layer;
  Layer other = layer;
  other.keys = layer.keys.clone();
  other.keys.narrow(1, kContext - 10, 10).mul_(2.0);
  EXPECT_FALSE(at::equal(Score(Make().get(), layer, kContext, {0.0})[0],
                         Score(Make().get(), other, kContext, {0.0})[0]));
}

TEST_F(CompactorVllmScorerTest, LeverageAgreesWithDoublePrecision) {
  const at::Tensor keys = at::randn({kGroups, 300, kDim});
  const at::Tensor sketch = PhiloxSketch(0)(0, {1, kDim, kVllmSketchColumns})[0];
  const at::Tensor k = keys.to(at::kDouble);
  const at::Tensor x = at::matmul(k - k.mean(1, true), sketch.to(at::kDouble) / std::sqrt(48.0));
  const at::Tensor gram = at::matmul(x.transpose(1, 2), x) + 5e-3 * at::eye(48, at::kDouble);
  const at::Tensor raw = (at::matmul(x, at::inverse(gram)) * x).sum(-1);
  const at::Tensor expected = (raw - raw.mean()) / raw.std(false);
  EXPECT_LE(MaxDifference(VllmLeverage(keys, sketch, 0), expected), 1e-4);
}

TEST_F(CompactorVllmScorerTest, ShortChunksFillUpTilesOf64Queries) {
  for (const int64_t rows : {128, 100, 64, 10}) {
    const at::Tensor q = at::randn({rows, 4, kDim}) * 0.2;
    const at::Tensor k = at::randn({2, rows, kDim});
    const at::Tensor mass = VllmChunkAttention(q, k);
    const int64_t filled_up = (64 - rows % 64) % 64;
    const double own = 2.0 * static_cast<double>(rows);
    const double padding = 2.0 * static_cast<double>(filled_up * rows) / 128.0;
    EXPECT_NEAR(mass[0].sum().item<double>(), own + padding, 1e-3) << rows;
  }
}

TEST_F(CompactorVllmScorerTest, AChunkOfEqualKeysHasLeverageZero) {
  const at::Tensor sketch = PhiloxSketch(0)(0, {1, kDim, kVllmSketchColumns})[0];
  EXPECT_EQ(VllmLeverage(at::ones({2, 1, kDim}), sketch, 0).abs().max().item<double>(), 0.0);
  EXPECT_EQ(PopulationZScore(at::full({2, 3}, 5.0)).abs().max().item<double>(), 0.0);
}

TEST_F(CompactorVllmScorerTest, NumbersThatArentFiniteNameTheLayer) {
  Layer layer;
  layer.queries.index_fill_(0, at::tensor({50}, at::kLong), std::nan(""));
  const auto error = ErrorOf([&] { Score(Make().get(), layer, kContext, {0.5}); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->kind(), ErrorKind::kInternal);
  EXPECT_EQ(error->field(), "layer 7");
}

}  // namespace
}  // namespace docmem::engine
