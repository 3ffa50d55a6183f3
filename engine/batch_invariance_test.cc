// A query's tokens and log-probabilities are the same bits alone and in any batch, whatever numbers
// the weights are and whoever wrote the cache. On the instruction path that the engine chooses
// here; kernels_test compares the rows of every path.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

#include "engine/testing.h"

namespace docmem::engine {
namespace {

using testing::Answer;
using testing::GoldenAdapter;
using testing::Ingest;
using testing::RunAlone;
using testing::TinyEngine;

// Sanitizers find in a few what they find in all; threads that wait for each other take long where
// other programs want the cores.
int Batches(int threads) {
  const char* sanitizers = std::getenv("DOCMEM_SANITIZE");
  return (sanitizers == nullptr || *sanitizers == '\0') && threads == 1 ? 200 : 20;
}

constexpr int kRequests = 32;

struct Numbers {
  std::string dtype;
  int threads;
};

class BatchInvarianceTest : public ::testing::TestWithParam<Numbers> {
 protected:
  BatchInvarianceTest() {
    at::set_num_threads(GetParam().threads);
    const std::string text =
        "The ferry leaves the island at six in the morning and comes back at noon; in winter it "
        "stays in the harbour whenever the wind blows from the north. ";
    std::string document;
    const auto ingest = [&](const Compression& compression, const IngestionOptions& writer = {}) {
      document += text;
      return Ingest(*engine_, engine_->EncodeContext("", document, 64), compression, writer);
    };
    for (const uint32_t ppm : {0U, 500'000U, 900'000U, 1'000'000U}) {
      caches_.push_back(ingest({.ratio_ppm = ppm}));
    }
    caches_.push_back(ingest({.ratio_ppm = 500'000, .int8 = true}));
    caches_.push_back(ingest({.ratio_ppm = 500'000, .profile = Profile::kCompactorVllm}));
    written_ = ingest({.ratio_ppm = 500'000}, {.mode = Mode::kAdapterPrefill, .adapter = writer_});
    for (int i = 0; i < kRequests; ++i) requests_.push_back(RandomRequest());
    for (const SequenceRequest& request : requests_) alone_.push_back(RunAlone(engine_, request));
  }

  ~BatchInvarianceTest() override { at::set_num_threads(1); }

  template <typename T>
  const T& Any(const std::vector<T>& of) {
    return of[random_() % of.size()];
  }

  SequenceRequest RandomRequest() {
    std::string question = "When";
    for (uint32_t words = random_() % 40; words > 0; --words) question += " does it leave";
    SequenceRequest request = {.cache = Any(caches_),
                               .adapter = Any(adapters_),
                               .prompt_ids = engine_->prompt_format().QuestionIds({}, "", question),
                               .max_tokens = 1 + static_cast<uint32_t>(random_() % 12)};
    if (random_() % 3 == 0) request.scope = AdapterScope::kAnswerOnly;
    if (random_() % 8 == 0) {
      request.cache = written_;
      request.adapter = writer_;
      request.scope = AdapterScope::kQuestionAndAnswer;
    }
    if (random_() % 4 == 0) request.answer_ids = engine_->tokenizer().EncodeUser("At six.");
    return request;
  }

  // Some of the requests, joining a session of random step size at random steps.
  std::map<size_t, Answer> RunTogether() {
    Session session(engine_, {.max_rows_per_step = 8 + static_cast<int64_t>(random_() % 200)});
    std::vector<size_t> waiting;
    for (size_t i = 0; i < requests_.size(); ++i) {
      if (random_() % 3 == 0) waiting.push_back(i);
    }
    std::map<SequenceId, size_t> running;
    std::map<size_t, Answer> answers;
    while (!waiting.empty() || session.running() > 0) {
      while (!waiting.empty() && (session.running() == 0 || random_() % 2 == 0)) {
        running[session.Add(requests_[waiting.back()])] = waiting.back();
        waiting.pop_back();
      }
      for (const SequenceEvent& event : session.Step()) {
        Answer& answer = answers[running.at(event.id)];
        answer.ids.insert(answer.ids.end(), event.token_ids.begin(), event.token_ids.end());
        answer.logprobs.insert(answer.logprobs.end(), event.logprobs.begin(), event.logprobs.end());
      }
    }
    return answers;
  }

  std::mt19937 random_{42};
  const std::shared_ptr<const Engine> engine_ = TinyEngine("tiny-llama", GetParam().dtype);
  std::vector<std::shared_ptr<const Cache>> caches_;
  const std::shared_ptr<const Adapter> writer_ = GoldenAdapter(*engine_, "all-modules");
  std::shared_ptr<const Cache> written_;  // by the adapter, for itself
  const std::vector<std::shared_ptr<const Adapter>> adapters_ = {
      nullptr, writer_, GoldenAdapter(*engine_, "query-value"), GoldenAdapter(*engine_, "rslora")};
  std::vector<SequenceRequest> requests_;
  std::vector<Answer> alone_;
};

TEST_P(BatchInvarianceTest, AQueryHasTheSameBitsAloneAndInAnyMixedBatch) {
  size_t compared = 0;
  const int batches = Batches(GetParam().threads);
  for (int batch = 0; batch < batches; ++batch) {
    for (const auto& [index, answer] : RunTogether()) {
      ASSERT_EQ(answer.ids, alone_[index].ids) << "request " << index << ", batch " << batch;
      ASSERT_EQ(answer.logprobs, alone_[index].logprobs)
          << "request " << index << ", batch " << batch;
      ++compared;
    }
  }
  EXPECT_GT(compared, static_cast<size_t>(batches));
}

INSTANTIATE_TEST_SUITE_P(Numbers, BatchInvarianceTest,
                         ::testing::Values(Numbers{"float32", 1}, Numbers{"bfloat16", 1},
                                           Numbers{"bfloat16", 2}, Numbers{"int8", 1}),
                         [](const auto& tested) {
                           return tested.param.dtype + std::to_string(tested.param.threads);
                         });

}  // namespace
}  // namespace docmem::engine
