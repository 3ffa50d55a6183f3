// The engine on a GPU against the engine on the CPU, in fp32: what it ingests and what it answers.
// Built with DOCMEM_CUDA; skips where there is no GPU.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "engine/model/testing.h"
#include "engine/testing.h"

namespace docmem::engine {
namespace {

using testing::GoldenAdapter;
using testing::LargestGap;
using testing::Reference;
using testing::RunAll;

class GpuTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!at::hasCUDA()) GTEST_SKIP() << "no GPU here";
    cpu_ = Load("cpu");
    gpu_ = Load("cuda:0");
  }

  static std::shared_ptr<const Engine> Load(const std::string& device) {
    return Engine::Load({.model_dir = Reference(std::string("models/") + GetParam()),
                         .device = device,
                         .dtype = "float32"});
  }

  static std::shared_ptr<const Cache> CacheOn(const Engine& engine,
                                              const Compression& compression) {
    std::string document;
    for (int i = 0; i < 40; ++i) document += "Line " + std::to_string(i * 7) + " of the record.\n";
    return testing::Ingest(engine, engine.EncodeContext("", document, 64), compression);
  }

  static std::vector<float> Answer(const std::shared_ptr<const Engine>& engine,
                                   const Compression& compression, bool adapted) {
    const auto cache = CacheOn(*engine, compression);
    const bool golden = std::string(GetParam()) == "tiny-llama";
    std::vector<SequenceRequest> requests;
    for (const char* question : {"Which line?", "What is it of, and how long?"}) {
      requests.push_back(
          {.cache = cache,
           .adapter = adapted && golden ? GoldenAdapter(*engine, "all-modules") : nullptr,
           .prompt_ids = engine->prompt_format().QuestionIds({}, "", question),
           .answer_ids = engine->tokenizer().EncodeUser("Line 49 of the record.")});
    }
    Session session(engine);
    std::vector<float> logprobs;
    for (const testing::Answer& answer : RunAll(session, requests)) {
      logprobs.insert(logprobs.end(), answer.logprobs.begin(), answer.logprobs.end());
    }
    return logprobs;
  }

  std::shared_ptr<const Engine> cpu_, gpu_;
};

TEST_P(GpuTest, AnswersAreTheCpusForEveryProfileRatioAndKvType) {
  for (const Profile profile : {Profile::kCompactor, Profile::kKnorm, Profile::kRandom,
                                Profile::kStreaming, Profile::kCompactorVllm}) {
    for (const uint32_t ppm : {0U, 500'000U, 900'000U, 1'000'000U}) {
      for (const bool int8 : {false, true}) {
        const Compression compression = {.ratio_ppm = ppm, .profile = profile, .int8 = int8};
        EXPECT_LE(LargestGap(Answer(cpu_, compression, true), Answer(gpu_, compression, true)),
                  int8 ? 0.05 : 1e-3)
            << ProfileName(profile) << " at " << ppm;
      }
    }
  }
}

TEST_P(GpuTest, ACacheMadeOnOneSideHasTheSamePositionsOnTheOther) {
  const Compression compression = {.ratio_ppm = 700'000};
  const auto cpu = CacheOn(*cpu_, compression), gpu = CacheOn(*gpu_, compression);
  const auto differing = cpu->rows().positions.ne(gpu->rows().positions).sum().item<int64_t>();
  std::printf("%lld of %lld positions differ\n", static_cast<long long>(differing),
              static_cast<long long>(cpu->rows().positions.numel()));
  EXPECT_LE(differing, cpu->rows().positions.numel() / 100);
}

INSTANTIATE_TEST_SUITE_P(Models, GpuTest,
                         ::testing::Values("tiny-llama", "tiny-llama-rope3", "tiny-qwen3"));

}  // namespace
}  // namespace docmem::engine
