// Caches with keys and values as int8: what they cost in accuracy, and that they survive their
// file.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/formats/error.h"
#include "engine/model/testing.h"
#include "engine/testing.h"

namespace docmem::engine {
namespace {

using testing::RunAlone;

constexpr const char* kDocument =
    "The lighthouse at Karrow Point was finished in 1874 after two winters of work. Its first "
    "keeper, "
    "a retired surveyor, wrote down the weather four times a day for thirty-one years, and his "
    "books "
    "fill a whole shelf of the county library. The lamp burned rape oil until 1892, then paraffin, "
    "and since 1931 it has been electric. Ships set their course by its two white flashes every "
    "twelve seconds. In the storm of November 1911 the gallery lost its railing, and a schooner "
    "with "
    "a cargo of roof slates went aground on the reef; all nine men came ashore in a single boat. "
    "The "
    "slates were sold at auction, and half of the houses in the village still carry them. Today "
    "the "
    "tower belongs to a trust that opens it on Saturdays from April to October. Visitors climb 138 "
    "steps. The light itself is run from an office on the mainland, but the old logbooks are still "
    "kept: a volunteer writes down the weather once a day, at noon, in the same brown ink.";
constexpr const char* kAnswer =
    "The lighthouse was finished in 1874, it has been electric since 1931, and visitors climb 138 "
    "steps on Saturdays from April to October.";

SequenceRequest Scored(const Engine& engine, std::shared_ptr<const Cache> cache) {
  return {.cache = std::move(cache),
          .prompt_ids = engine.prompt_format().QuestionIds({}, "", "Tell me about the lighthouse."),
          .answer_ids = engine.tokenizer().EncodeUser(kAnswer)};
}

std::shared_ptr<const Cache> Ingested(const Engine& engine, uint32_t ppm, bool int8) {
  return testing::Ingest(engine, engine.EncodeContext("", kDocument, 64),
                         {.ratio_ppm = ppm, .int8 = int8});
}

double MeanGap(const std::vector<float>& left, const std::vector<float>& right) {
  double sum = 0.0;
  for (size_t i = 0; i < left.size(); ++i) sum += std::abs(left[i] - right[i]);
  return sum / static_cast<double>(left.size());
}

TEST(Int8KvTest, OnRealTextTheMeanLogProbabilityMovesByAtMostATwentieth) {
  const auto folder = testing::SmolLm2();
  if (!folder) GTEST_SKIP() << testing::kNoSmolLm2;
  const auto engine = Engine::Load({.model_dir = *folder, .dtype = "float32"});
  for (const uint32_t ppm : {0U, 500'000U, 900'000U}) {
    const auto exact = RunAlone(engine, Scored(*engine, Ingested(*engine, ppm, false))).logprobs;
    const auto int8 = RunAlone(engine, Scored(*engine, Ingested(*engine, ppm, true))).logprobs;
    const double gap = MeanGap(exact, int8);
    std::printf("ratio %.1f: mean |difference| %.4f over %zu tokens\n", ppm / 1e6, gap,
                int8.size());
    EXPECT_LE(gap, 0.05) << ppm;
    EXPECT_GT(gap, 0.0) << ppm;
  }
}

TEST(Int8WeightsTest, OnRealTextTheMeanLogProbabilityMovesByAtMostATenth) {
  const auto folder = testing::SmolLm2();
  if (!folder) GTEST_SKIP() << testing::kNoSmolLm2;
  std::vector<std::vector<float>> logprobs;
  for (const char* dtype : {"bfloat16", "int8"}) {
    const auto engine = Engine::Load({.model_dir = *folder, .dtype = dtype});
    EXPECT_EQ(engine->identity().dtype, dtype);
    logprobs.push_back(RunAlone(engine, Scored(*engine, Ingested(*engine, 0, false))).logprobs);
  }
  const double gap = MeanGap(logprobs[0], logprobs[1]);
  std::printf("int8 weights: mean |difference| %.4f\n", gap);
  EXPECT_LE(gap, 0.1);
  EXPECT_GT(gap, 0.0);
}

TEST(Int8WeightsTest, CachesOfOtherWeightsAreRefused) {
  const auto exact = testing::TinyEngine("tiny-llama", "bfloat16");
  const auto int8 = testing::TinyEngine("tiny-llama", "int8");
  try {
    RunAlone(int8, Scored(*int8, Ingested(*exact, 500'000, false)));
    FAIL() << "a cache of bfloat16 weights was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFailedPrecondition);
    EXPECT_EQ(error.field(), "dtype");
  }
}

TEST(Int8KvTest, TheKernelsReadWhatThePlainOperatorsDequantise) {
  const auto engine = testing::TinyEngine("tiny-llama");
  const auto cache = Ingested(*engine, 500'000, true);
  const HeadKv plain = cache->Head(1, 0);
  const KvSpan span = cache->HeadSpan(1, 0);
  ASSERT_EQ(span.type, NumberType::kInt8);
  const auto* keys = static_cast<const int8_t*>(span.keys);
  const auto* values = static_cast<const int8_t*>(span.values);
  const int64_t dim = plain.keys.size(1);
  for (int64_t row = 0; row < span.rows; ++row) {
    EXPECT_EQ(plain.keys[row][3].item<float>(),
              static_cast<float>(keys[row * dim + 3]) * span.key_scales[3]);
    EXPECT_EQ(plain.values[row][5].item<float>(),
              static_cast<float>(values[row * dim + 5]) * span.value_scales[row]);
  }
}

TEST(Int8KvTest, AFileBringsTheSameAnswersAndIsAsLongAsForetold) {
  for (const char* dtype : {"float32", "bfloat16"}) {
    const auto engine = testing::TinyEngine("tiny-llama", dtype);
    const auto cache = Ingested(*engine, 500'000, true);
    std::vector<std::byte> file;
    WriteCacheFile(*cache, [&file](std::span<const std::byte> bytes) {
      file.insert(file.end(), bytes.begin(), bytes.end());
    });
    EXPECT_EQ(file.size(), CacheFileBytes(*cache));
    EXPECT_EQ(file.size(), engine->CacheBytes(cache->kept_tokens(), /*int8=*/true));
    EXPECT_EQ(cache->identity().kv_dtype, "int8");
    const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(file));
    const auto loaded = engine->LoadCache({.owner = owner, .bytes = *owner});
    EXPECT_EQ(RunAlone(engine, Scored(*engine, loaded)).logprobs,
              RunAlone(engine, Scored(*engine, cache)).logprobs);
  }
}

TEST(Int8KvTest, IsAnotherCacheThanTheOneOfTheModelsDtype) {
  const auto engine = testing::TinyEngine("tiny-llama");
  const Context context = engine->EncodeContext("", kDocument, 64);
  EXPECT_NE(engine->IdentityOf(context, {.int8 = true}).Digest(),
            engine->IdentityOf(context, {}).Digest());
}

}  // namespace
}  // namespace docmem::engine
