#include "engine/sampling/sampler.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <set>

#include "engine/formats/error.h"

namespace docmem::engine {
namespace {

at::Tensor Logits(std::vector<float> values) { return at::tensor(values, at::kFloat); }

std::map<int32_t, int> Histogram(const SamplingOptions& options, const at::Tensor& logits,
                                 int draws) {
  Sampler sampler(options);
  std::map<int32_t, int> counts;
  for (int i = 0; i < draws; ++i) {
    ++counts[sampler.Sample(logits).id];
  }
  return counts;
}

ErrorKind KindOf(const std::function<void()>& action, std::string* field) {
  try {
    action();
  } catch (const Error& error) {
    *field = error.field();
    return error.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::kNotFound;
}

TEST(SamplerTest, GreedyTakesTheHighestLogitAndGivesItsLogProbability) {
  const at::Tensor logits = Logits({0.0F, 3.0F, 1.0F});
  const SampledToken token = Sampler({}).Sample(logits);
  EXPECT_EQ(token.id, 1);
  EXPECT_NEAR(token.logprob, 3.0 - std::log(1.0 + std::exp(3.0) + std::exp(1.0)), 1e-6);
}

TEST(SamplerTest, OfEqualLogitsGreedyTakesTheLowestIdAtAnySize) {
  at::Tensor logits = at::zeros({151'936});
  EXPECT_EQ(Sampler({}).Sample(logits).id, 0);
  for (const int64_t id : {77'777, 77'778, 150'000}) {
    logits[id] = 5.0F;
  }
  EXPECT_EQ(Sampler({}).Sample(logits).id, 77'777);
}

TEST(SamplerTest, LogProbabilityIsRawWhateverTheSampling) {
  const at::Tensor logits = Logits({0.5F, 2.0F, -1.0F, 1.5F});
  const at::Tensor expected = at::log_softmax(logits, 0);
  Sampler sampler({.temperature = 1.7, .top_p = 0.8, .top_k = 3, .seed = 3});
  for (int i = 0; i < 20; ++i) {
    const SampledToken token = sampler.Sample(logits);
    EXPECT_NEAR(token.logprob, expected[token.id].item<float>(), 1e-6);
  }
  EXPECT_NEAR(LogProbability(logits, 2), expected[2].item<float>(), 1e-6);
}

TEST(SamplerTest, SameSeedAndLogitsGiveTheSameTokens) {
  const at::Tensor logits = at::linspace(-2, 2, 500);
  Sampler first({.temperature = 1.0, .seed = 42});
  Sampler second({.temperature = 1.0, .seed = 42});
  Sampler other({.temperature = 1.0, .seed = 43});
  int differences = 0;
  for (int i = 0; i < 50; ++i) {
    const int32_t id = first.Sample(logits).id;
    EXPECT_EQ(id, second.Sample(logits).id);
    differences += id != other.Sample(logits).id;
  }
  EXPECT_GT(differences, 40);
}

TEST(SamplerTest, TokensComeWithTheTemperedFrequencies) {
  const at::Tensor logits = Logits({0.0F, 2.0F * std::numbers::ln2_v<float>});
  const auto counts = Histogram({.temperature = 2.0, .seed = 1}, logits, 30'000);
  EXPECT_NEAR(counts.at(1) / 30'000.0, 2.0 / 3.0, 0.01);
}

TEST(SamplerTest, TopKKeepsTheKBestAndWhatEqualsTheLast) {
  const at::Tensor logits = Logits({1.0F, 3.0F, 2.0F, 2.0F, 0.0F});
  const auto counts = Histogram({.temperature = 1.0, .top_k = 2, .seed = 5}, logits, 2'000);
  EXPECT_EQ(counts.size(), 3U);
  EXPECT_FALSE(counts.contains(0));
  EXPECT_FALSE(counts.contains(4));
}

TEST(SamplerTest, TopPKeepsTheSmallestSetThatReachesIt) {
  const at::Tensor logits = at::log(Logits({0.5F, 0.3F, 0.15F, 0.05F}));
  EXPECT_EQ(Histogram({.temperature = 1.0, .top_p = 0.45, .seed = 1}, logits, 500).size(), 1U);
  EXPECT_EQ(Histogram({.temperature = 1.0, .top_p = 0.7, .seed = 1}, logits, 500).size(), 2U);
  EXPECT_EQ(Histogram({.temperature = 1.0, .top_p = 0.9, .seed = 1}, logits, 500).size(), 3U);
  EXPECT_EQ(Histogram({.temperature = 1.0, .top_p = 1.0, .seed = 1}, logits, 500).size(), 4U);
}

TEST(SamplerTest, NanAndInfinityAreInternalErrorsInEveryMode) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {nan, infinity}) {
    const at::Tensor logits = Logits({0.0F, bad, 1.0F});
    std::string field;
    EXPECT_EQ(KindOf([&] { Sampler({}).Sample(logits); }, &field), ErrorKind::kInternal);
    EXPECT_EQ(KindOf([&] { Sampler({.temperature = 1.0}).Sample(logits); }, &field),
              ErrorKind::kInternal);
    EXPECT_EQ(KindOf([&] { LogProbability(logits, 0); }, &field), ErrorKind::kInternal);
    EXPECT_EQ(field, "logits");
  }
}

TEST(SamplerTest, MinusInfinityIsOnlyAnImpossibleToken) {
  const at::Tensor logits = Logits({-std::numeric_limits<float>::infinity(), 0.0F});
  EXPECT_EQ(Histogram({.temperature = 2.0}, logits, 200).size(), 1U);
}

TEST(SamplerTest, SettingsOutOfRangeAreRefusedByName) {
  const std::pair<SamplingOptions, std::string> cases[] = {
      {{.temperature = -0.1}, "temperature"},
      {{.temperature = 2.1}, "temperature"},
      {{.temperature = std::nan("")}, "temperature"},
      {{.top_p = 0.0}, "top_p"},
      {{.top_p = 1.01}, "top_p"},
      {{.top_p = std::nan("")}, "top_p"},
  };
  for (const auto& [options, expected_field] : cases) {
    std::string field;
    EXPECT_EQ(KindOf([&, o = options] { ValidateSampling(o); }, &field),
              ErrorKind::kInvalidArgument);
    EXPECT_EQ(field, expected_field);
  }
}

}  // namespace
}  // namespace docmem::engine
