// Agreement on a real model; skipped where SmolLM2-135M-Instruct hasn't been made.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "engine/formats/json_fields.h"
#include "engine/model/testing.h"
#include "engine/testing.h"

namespace docmem::engine {
namespace {

using testing::Answer;
using testing::CacheOfKept;
using testing::Ids;
using testing::LoadTensors;
using testing::Reference;
using testing::RunAlone;
using testing::Uniform;

Json ParseReference(const std::string& name) {
  std::ifstream file(Reference(name));
  return ParseJson(std::string{std::istreambuf_iterator<char>(file), {}}, name);
}

class SmolLm2Test : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto folder = testing::SmolLm2();
    if (!folder) {
      GTEST_SKIP() << testing::kNoSmolLm2;
    }
    engine_ = Engine::Load({.model_dir = *folder, .dtype = "float32", .threads = 1});
  }

  // Nothing is evicted: the first 8 tokens are a cache, the rest is asked over it.
  Answer GreedyAnswer(const std::vector<int32_t>& prompt) const {
    const Context context{.ids = {prompt.begin(), prompt.begin() + 8}, .head_tokens = 8};
    const auto cache = testing::Ingest(*engine_, context, {.ratio_ppm = 0});
    return RunAlone(
        engine_,
        {.cache = cache, .prompt_ids = {prompt.begin() + 8, prompt.end()}, .max_tokens = 64});
  }

  std::shared_ptr<const Engine> engine_;
};

TEST_F(SmolLm2Test, SixtyFourGreedyTokensEqualTransformers) {
  const auto golden = LoadTensors(Reference("smollm2/chat.safetensors"));
  const std::vector<int32_t> expected = Ids(golden.at("answer"));
  const Answer answer = GreedyAnswer(Ids(golden.at("ids")));
  ASSERT_LE(answer.ids.size(), expected.size());
  EXPECT_TRUE(std::equal(answer.ids.begin(), answer.ids.end(), expected.begin()));
  EXPECT_TRUE(answer.ids.size() == 64U || answer.finish == FinishReason::kEndOfTurn);
  EXPECT_EQ(answer.text.substr(0, 3), engine_->tokenizer().Decode(expected).substr(0, 3));
}

TEST_F(SmolLm2Test, SixtyFourGreedyTokensEqualLlamaCpp) {
  for (const Json& item : ParseReference("smollm2/llama_cpp.json")) {
    const std::string prompt = item.at("prompt");
    const std::vector<int32_t> ids = item.at("ids");
    const std::vector<int32_t> expected = item.at("answer");
    SCOPED_TRACE(prompt);
    EXPECT_EQ(engine_->tokenizer().EncodeTemplate(prompt), ids);
    EXPECT_EQ(GreedyAnswer(ids).ids, expected);
  }
}

TEST_F(SmolLm2Test, AnswersOverTheCompressedCacheEqualTheGolden) {
  const auto golden = LoadTensors(Reference("smollm2/compressed.safetensors"));
  const Json item = ParseReference("smollm2/case.json");
  const at::Tensor ids = golden.contains("ids")
                             ? golden.at("ids")
                             : LoadTensors(Reference("smollm2/logits.safetensors")).at("ids");
  const Context context{.ids = Ids(ids), .head_tokens = item.at("head")};
  const auto cache = CacheOfKept(*engine_, context, Uniform(golden.at("kept")));
  const std::vector<int32_t> expected = Ids(golden.at("answer"));
  const Answer answer = RunAlone(engine_, {.cache = cache,
                                           .prompt_ids = Ids(golden.at("question")),
                                           .max_tokens = static_cast<uint32_t>(expected.size())});
  ASSERT_LE(answer.ids.size(), expected.size());
  EXPECT_TRUE(std::equal(answer.ids.begin(), answer.ids.end(), expected.begin()));
  EXPECT_TRUE(answer.ids.size() == expected.size() || answer.finish == FinishReason::kEndOfTurn);
}

}  // namespace
}  // namespace docmem::engine
