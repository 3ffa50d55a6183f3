#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "engine/compression/prefill.h"
#include "engine/compression/testing.h"
#include "engine/formats/json_fields.h"
#include "engine/model/testing.h"
#include "engine/session.h"
#include "engine/testing.h"

namespace docmem::engine {
namespace {

using testing::Answer;
using testing::CacheOfKept;
using testing::GoldenAdapter;
using testing::Ids;
using testing::Ingest;
using testing::LargestGap;
using testing::LoadTensors;
using testing::PlainGreedy;
using testing::Reference;
using testing::RunAlone;
using testing::TinyEngine;
using testing::Uniform;

Json Cases(const std::string& folder) {
  std::ifstream file(Reference(folder + "/cases.json"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return ParseJson(text, folder + "/cases.json");
}

Context GoldenContext(const std::string& model, int64_t length, int64_t head) {
  const at::Tensor ids = LoadTensors(Reference("compression/" + model + ".safetensors")).at("ids");
  return {.ids = Ids(ids.narrow(0, 0, length)), .head_tokens = head};
}

// The cache of a golden case: ρ = 0 and 1 by our own ingestion, others from kvpress's kept sets.
std::shared_ptr<const Cache> GoldenCache(const Engine& engine, const Json& item,
                                         const std::string& model) {
  const int64_t length = item.at("length");
  const uint32_t ppm = item.at("ratio_ppm");
  const Context context = GoldenContext(model, length, item.at("head"));
  if (ppm == 0 || ppm == kRatioOnePpm) {
    return Ingest(engine, context, {.ratio_ppm = ppm});
  }
  const auto kept = LoadTensors(
      Reference("compression/" + model + "-" + std::to_string(length) + "-head.safetensors"));
  return CacheOfKept(engine, context, Uniform(kept.at("kept." + std::to_string(ppm))));
}

TEST(SessionGoldenTest, GreedyAnswersOverCompressedCachesEqualKvpress) {
  for (const Json& item : Cases("answers")) {
    const std::string model = item.at("model");
    const auto engine = TinyEngine(model);
    const auto cache = GoldenCache(*engine, item, model);
    ASSERT_EQ(cache->next_position(), item.at("question_position").get<int64_t>());
    const auto golden = LoadTensors(Reference("answers/" + item.at("file").get<std::string>()));
    const std::vector<int32_t> expected = Ids(golden.at("answer"));
    const Answer answer = RunAlone(engine, {.cache = cache,
                                            .prompt_ids = Ids(golden.at("question")),
                                            .max_tokens = static_cast<uint32_t>(expected.size())});
    ASSERT_LE(answer.ids.size(), expected.size());
    EXPECT_TRUE(std::equal(answer.ids.begin(), answer.ids.end(), expected.begin()))
        << item.at("file");
    EXPECT_TRUE(answer.finish == FinishReason::kEndOfTurn || answer.ids.size() == expected.size());
    if (golden.contains("logits")) {
      const Answer scored = RunAlone(
          engine,
          {.cache = cache, .prompt_ids = Ids(golden.at("question")), .answer_ids = expected});
      const at::Tensor logprobs = at::log_softmax(golden.at("logits"), -1)
                                      .gather(1, golden.at("answer").to(at::kLong).unsqueeze(1));
      const double gap = testing::MaxDifference(at::tensor(scored.logprobs), logprobs.squeeze(1));
      std::printf("%s: %zu tokens, max |log-probability difference| %.2e\n",
                  item.at("file").get<std::string>().c_str(), answer.ids.size(), gap);
      EXPECT_LT(gap, 1e-4);
    }
  }
}

struct ScoreCase {
  std::string key;
  Mode mode;
  AdapterScope scope;
  uint32_t ppm;
};

// The entries "MODE.SCOPE.PPM" of a golden file.
std::vector<ScoreCase> ScoreCases(const std::map<std::string, at::Tensor>& golden) {
  std::vector<ScoreCase> cases;
  for (const auto& [key, tensor] : golden) {
    const auto mode = ModeFromName(key.substr(0, key.find('.')));
    if (mode) {
      const bool answer_only = key.find(".answer.") != std::string::npos;
      cases.push_back(
          {.key = key,
           .mode = *mode,
           .scope = answer_only ? AdapterScope::kAnswerOnly : AdapterScope::kQuestionAndAnswer,
           .ppm = static_cast<uint32_t>(std::stoul(key.substr(key.rfind('.') + 1)))});
    }
  }
  return cases;
}

// The mode's cache: whole or head alone by our own ingestion, else the rows of its writer at the
// positions that kvpress kept for its scorer.
std::shared_ptr<const Cache> ScoreCache(const Engine& engine, const Context& context,
                                        const ScoreCase& score, const IngestionOptions& makers,
                                        const std::map<std::string, at::Tensor>& golden) {
  if (score.ppm == 0 || score.ppm == kRatioOnePpm) {
    return Ingest(engine, context, {.ratio_ppm = score.ppm}, makers);
  }
  const std::string scorer = score.mode == Mode::kAdapterPrefill ? "ADAPTER_PREFILL" : "BASE";
  const at::Tensor kept = golden.at("kept." + scorer + "." + std::to_string(score.ppm));
  return CacheOfKept(engine, context, Uniform(kept), makers);
}

TEST(SessionGoldenTest, ScoresEqualTransformersPeftAndKvpressInAllModesAndScopes) {
  std::map<Mode, size_t> compared;
  for (const Json& item : Cases("score")) {
    const std::string model = item.at("model");
    const auto engine = TinyEngine(model);
    const auto adapter = GoldenAdapter(*engine, item.at("adapter"));
    const auto golden = LoadTensors(Reference("score/" + item.at("file").get<std::string>()));
    const Context context = GoldenContext(model, item.at("length"), item.at("head"));
    std::map<Mode, double> largest;
    for (const ScoreCase& score : ScoreCases(golden)) {
      const IngestionOptions makers = {.mode = score.mode, .adapter = adapter};
      const auto cache = ScoreCache(*engine, context, score, makers, golden);
      const Answer answer =
          RunAlone(engine, {.cache = cache,
                            .adapter = UsesAdapter(score.mode) ? adapter : nullptr,
                            .scope = score.scope,
                            .prompt_ids = Ids(golden.at("prompt")),
                            .answer_ids = Ids(golden.at("answer"))});
      EXPECT_EQ(answer.finish, FinishReason::kScored);
      const double gap = testing::MaxDifference(at::tensor(answer.logprobs), golden.at(score.key));
      EXPECT_LT(gap, 1e-4) << item.at("file") << " " << score.key;
      largest[score.mode] = std::max(largest[score.mode], gap);
      ++compared[score.mode];
    }
    for (const auto& [mode, gap] : largest) {
      std::printf("%s %s: max |log-probability difference| %.2e\n",
                  item.at("file").get<std::string>().c_str(), ModeName(mode).data(), gap);
    }
  }
  EXPECT_EQ(compared, (std::map<Mode, size_t>{{Mode::kBase, 12},
                                              {Mode::kBaseKvAdapterDecode, 24},
                                              {Mode::kAdapterPrefill, 24},
                                              {Mode::kBaseScoreAdapterPrefill, 24}}));
}

// Runs one prefill of the mode with kvpress's sketch and compares which positions it keeps.
TEST(SessionGoldenTest, EveryModeKeepsThePositionsThatKvpressKeptForItsScorer) {
  for (const Json& item : Cases("score")) {
    const std::string model = item.at("model");
    const auto engine = TinyEngine(model);
    const auto adapter = GoldenAdapter(*engine, item.at("adapter"));
    const auto golden = LoadTensors(Reference("score/" + item.at("file").get<std::string>()));
    const Context context = GoldenContext(model, item.at("length"), item.at("head"));
    const at::Tensor sketch =
        LoadTensors(Reference("compression/" + model + ".safetensors")).at("sketch");
    for (const Mode mode : {Mode::kBase, Mode::kAdapterPrefill}) {
      const bool own = mode == Mode::kAdapterPrefill;
      const auto results = testing::RunPrefill(
          engine->transformer(), {.context_ids = {context.ids.begin(), context.ids.end()},
                                  .head_tokens = context.head_tokens,
                                  .compressions = {{.ratio_ppm = 500'000}, {.ratio_ppm = 900'000}},
                                  .writer = own ? &adapter->weights() : nullptr,
                                  .sketch = testing::GoldenSketch(sketch)});
      for (size_t i = 0; i < results.size(); ++i) {
        const at::Tensor kept =
            golden.at("kept." + std::string(ModeName(mode)) + (i == 0 ? ".500000" : ".900000"));
        EXPECT_TRUE(at::equal(results[i].positions, kept.flatten())) << item.at("file") << own << i;
      }
    }
  }
}

// A golden ragged cache of the profile compactor-vllm.
KeptPositions Ragged(const std::map<std::string, at::Tensor>& golden, const std::string& key) {
  const at::Tensor counts = golden.at(key + ".counts").flatten();
  return {.positions = golden.at(key),
          .offsets = at::cat({at::zeros({1}, at::kLong), counts.cumsum(0)})};
}

TEST(SessionGoldenTest, ScoresOverRaggedCachesEqualTransformersWithMaskedHeads) {
  double largest = 0.0;
  size_t compared = 0;
  for (const Json& item : Cases("profiles")) {
    const std::string model = item.at("model");
    const auto engine = TinyEngine(model);
    const auto golden = LoadTensors(Reference("profiles/" + item.at("file").get<std::string>()));
    const Context context = GoldenContext(model, item.at("length"), item.at("head"));
    for (const Json& ppm : item.at("ratios").at("compactor-vllm")) {
      const std::string key = "compactor-vllm." + std::to_string(ppm.get<uint32_t>());
      const auto cache = CacheOfKept(*engine, context, Ragged(golden, key));
      EXPECT_TRUE(cache->Ragged(0) || cache->Ragged(1));
      const Answer answer = RunAlone(engine, {.cache = cache,
                                              .prompt_ids = Ids(golden.at("prompt")),
                                              .answer_ids = Ids(golden.at("answer"))});
      const double gap =
          testing::MaxDifference(at::tensor(answer.logprobs), golden.at(key + ".logprobs"));
      EXPECT_LT(gap, 1e-4) << item.at("file") << " " << key;
      largest = std::max(largest, gap);
      ++compared;
    }
  }
  std::printf("%zu ragged caches: max |log-probability difference| %.2e\n", compared, largest);
  EXPECT_GE(compared, 16U);
}

class TinyModelTest : public ::testing::TestWithParam<std::string> {};

TEST_P(TinyModelTest, AtRatioZeroTheAnswerIsThatOfThePlainPrompt) {
  const auto engine = TinyEngine(GetParam());
  const Context context = engine->EncodeContext("", "A short document about nothing much.", 64);
  const std::vector<int32_t> question = engine->prompt_format().QuestionIds({}, "", "What?");
  std::vector<int32_t> prompt = context.ids;
  prompt.insert(prompt.end(), question.begin(), question.end());
  const auto cache = Ingest(*engine, context, {.ratio_ppm = 0});
  const Answer answer =
      RunAlone(engine, {.cache = cache, .prompt_ids = question, .max_tokens = 24});
  EXPECT_EQ(answer.ids, PlainGreedy(*engine, prompt, 24));
}

TEST_P(TinyModelTest, WhenNothingOfTheDocumentIsLeftTheAnswerIsThatWithoutIt) {
  const auto engine = TinyEngine(GetParam());
  const Context context = engine->EncodeContext("", "12345", 64);
  const std::vector<int32_t> question = engine->prompt_format().QuestionIds({}, "", "What?");
  std::vector<int32_t> prompt(context.ids.begin(), context.ids.begin() + context.head_tokens);
  prompt.insert(prompt.end(), question.begin(), question.end());
  const std::vector<int32_t> expected = PlainGreedy(*engine, prompt, 24);
  for (const uint32_t ppm : {kRatioOnePpm, 900'000U}) {
    const auto cache = Ingest(*engine, context, {.ratio_ppm = ppm});
    ASSERT_EQ(cache->kept_tokens(), context.head_tokens);
    const Answer answer =
        RunAlone(engine, {.cache = cache, .prompt_ids = question, .max_tokens = 24});
    EXPECT_EQ(answer.ids, expected) << ppm;
  }
}

INSTANTIATE_TEST_SUITE_P(All, TinyModelTest,
                         ::testing::Values("tiny-llama", "tiny-llama-rope3", "tiny-qwen3"));

}  // namespace
}  // namespace docmem::engine
