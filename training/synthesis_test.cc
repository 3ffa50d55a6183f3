#include "training/synthesis.h"

#include <gtest/gtest.h>

#include "engine/model/testing.h"
#include "engine/testing.h"
#include "training/testing.h"

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

}  // namespace
}  // namespace docmem::training
