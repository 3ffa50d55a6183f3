// The scorers of the profiles `knorm`, `random` and `streaming`.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/compression/scorer_knorm.h"
#include "engine/compression/scorer_random.h"
#include "engine/compression/scorer_streaming.h"
#include "engine/model/testing.h"

namespace docmem::engine {
namespace {

using testing::ErrorOf;
using testing::MaxDifference;

constexpr int64_t kContext = 60, kHead = 5, kGroups = 2, kDim = 16;

std::unique_ptr<Scorer> Make(Profile profile, uint64_t seed = 0) {
  const ModelConfig config = {.query_heads = 4, .kv_heads = kGroups, .head_dim = kDim};
  return MakeScorer(
      config, {.profile = profile, .context_tokens = kContext, .head_tokens = kHead, .seed = seed});
}

void AddInPieces(Scorer* scorer, const at::Tensor& keys, int64_t rows) {
  for (int64_t first = 0; first < kContext; first += rows) {
    const int64_t count = std::min(rows, kContext - first);
    scorer->Add({.first_row = first,
                 .queries = at::zeros({count, 4, kDim}),
                 .keys = keys.narrow(1, 0, first + count)});
  }
}

TEST(KnormScorer, PrefersKeysOfSmallNormHoweverTheyCome) {
  const c10::InferenceMode inference;
  const at::Tensor keys = at::randn({kGroups, kContext, kDim});
  const at::Tensor expected = -keys.pow(2).sum(-1).sqrt().narrow(1, kHead, kContext - kHead);
  for (const int64_t rows : {1, 7, 60}) {
    const auto scorer = Make(Profile::kKnorm);
    AddInPieces(scorer.get(), keys, rows);
    const std::vector<at::Tensor> scores = scorer->Finish(0, {0.0, 0.0});
    ASSERT_EQ(scores.size(), 2U);
    EXPECT_LE(MaxDifference(scores[1], expected), 1e-5) << rows;
  }
}

TEST(KnormScorer, NormsOfBf16KeysAreTakenInFp32) {
  const c10::InferenceMode inference;
  const at::Tensor keys = at::randn({kGroups, kContext, kDim}).to(at::kBFloat16);
  const auto scorer = Make(Profile::kKnorm);
  AddInPieces(scorer.get(), keys, kContext);
  const at::Tensor wide = keys.to(at::kFloat).narrow(1, kHead, kContext - kHead);
  EXPECT_LE(MaxDifference(scorer->Finish(0, {0.0})[0], -wide.pow(2).sum(-1).sqrt()), 1e-5);
}

TEST(KnormScorer, NumbersThatArentFiniteNameTheLayer) {
  const c10::InferenceMode inference;
  const auto scorer = Make(Profile::kKnorm);
  AddInPieces(scorer.get(), at::full({kGroups, kContext, kDim}, std::nan("")), kContext);
  const auto error = ErrorOf([&] { scorer->Finish(7, {0.0}); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->kind(), ErrorKind::kInternal);
  EXPECT_EQ(error->field(), "layer 7");
}

TEST(RandomScorer, AScoreIsAFunctionOfSeedLayerHeadAndPosition) {
  const at::Tensor scores = RandomScores(3, 1, 2, 0, 5000);
  EXPECT_TRUE(at::equal(RandomScores(3, 1, 2, 100, 50), scores.narrow(1, 100, 50)));
  EXPECT_FALSE(at::equal(RandomScores(4, 1, 2, 0, 5000), scores));
  EXPECT_FALSE(at::equal(RandomScores(3, 2, 2, 0, 5000), scores));
  EXPECT_FALSE(at::equal(scores[0], scores[1]));
  EXPECT_GE(scores.min().item<float>(), 0.0F);
  EXPECT_LT(scores.max().item<float>(), 1.0F);
  EXPECT_NEAR(scores.mean().item<double>(), 0.5, 0.01);
  EXPECT_NEAR(scores.var().item<double>(), 1.0 / 12.0, 0.002);
}

TEST(RandomScorer, ScoresTheMiddle) {
  const auto scorer = Make(Profile::kRandom, 9);
  EXPECT_TRUE(
      at::equal(scorer->Finish(2, {0.0})[0], RandomScores(9, 2, kGroups, kHead, kContext - kHead)));
}

TEST(StreamingScorer, TheLaterTheBetterInEveryHead) {
  const at::Tensor scores = Make(Profile::kStreaming)->Finish(0, {0.0})[0];
  EXPECT_EQ(scores.sizes(), at::IntArrayRef({kGroups, kContext - kHead}));
  EXPECT_TRUE((scores.diff() > 0).all().item<bool>());
}

}  // namespace
}  // namespace docmem::engine
