#include "training/synthesis.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "engine/model/testing.h"
#include "engine/testing.h"
#include "training/testing.h"
#include "training/words.h"

namespace docmem::training {
namespace {

using testing::kDocument;

void Finish(Synthesis* synthesis) {
  while (!synthesis->Step()) {
  }
}

int64_t Sum(const SynthesisCounts& counts) {
  return counts.kept + counts.empty + counts.duplicates + counts.ungrounded;
}

TEST(SynthesisTest, ATinyModelsNonsenseIsDroppedAndCounted) {
  const auto engine = engine::testing::TinyEngine("tiny-llama");
  Synthesis synthesis(engine, engine->EncodeContext("", kDocument, 0),
                      {.pairs = 6, .chunk_tokens = 64});
  Finish(&synthesis);
  const SynthesisCounts& counts = synthesis.counts();
  EXPECT_GE(counts.drafts, 6);
  EXPECT_EQ(Sum(counts), counts.drafts);
  EXPECT_EQ(static_cast<int64_t>(synthesis.pairs().size()), counts.kept);
  EXPECT_EQ(synthesis.progress(), 1.0);
}

TEST(SynthesisTest, NothingWantedIsFinishedAtOnce) {
  const auto engine = engine::testing::TinyEngine("tiny-llama");
  Synthesis synthesis(engine, engine->EncodeContext("", kDocument, 0), {});
  EXPECT_TRUE(synthesis.Step());
  EXPECT_EQ(synthesis.counts().drafts, 0);
}

TEST(SynthesisTest, RefusesADocumentWithoutTokens) {
  const auto engine = engine::testing::TinyEngine("tiny-llama");
  const auto error = engine::testing::ErrorOf(
      [&] { Synthesis(engine, {.ids = {1, 2}, .head_tokens = 2}, {.pairs = 1}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->field(), "document");
}

class SmolLm2SynthesisTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto model = engine::testing::SmolLm2();
    if (!model) GTEST_SKIP() << "DOCMEM_SMOLLM2 names no model";
    engine_ = engine::Engine::Load({.model_dir = *model, .dtype = "float32"});
  }

  std::vector<QaPair> Pairs(uint64_t seed, const std::vector<std::string>& known = {}) {
    Synthesis synthesis(engine_, engine_->EncodeContext("", kDocument, 0),
                        {.pairs = 4, .seed = seed}, known);
    Finish(&synthesis);
    counts_ = synthesis.counts();
    return synthesis.pairs();
  }

  std::shared_ptr<const engine::Engine> engine_;
  SynthesisCounts counts_;
};

TEST_F(SmolLm2SynthesisTest, WritesGroundedPairsThatAreAFunctionOfTheSeed) {
  const auto pairs = Pairs(1);
  EXPECT_EQ(Sum(counts_), counts_.drafts);
  std::printf("%ld drafts: %ld kept, %ld empty, %ld duplicates, %ld ungrounded\n",
              static_cast<long>(counts_.drafts), static_cast<long>(counts_.kept),
              static_cast<long>(counts_.empty), static_cast<long>(counts_.duplicates),
              static_cast<long>(counts_.ungrounded));
  ASSERT_GE(pairs.size(), 2U);
  const auto source = ContentWords(kDocument);
  std::set<std::string> questions;
  for (const QaPair& pair : pairs) {
    EXPECT_TRUE(pair.question.ends_with("?"));
    EXPECT_GE(SharedPart(ContentWords(pair.answer), source), 0.6);
    EXPECT_TRUE(questions.insert(Normalised(pair.question)).second);
    EXPECT_LT(pair.chunk.value(), 2U);
  }
  const auto again = Pairs(1, {pairs.front().question});
  EXPECT_GE(counts_.duplicates, 1);
  for (const QaPair& pair : again) EXPECT_NE(pair.question, pairs.front().question);
}

}  // namespace
}  // namespace docmem::training
