// A query's tokens and log-probabilities are the same bits alone and in any batch, on every
// instruction path that the engine can be loaded with here.
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

// Sanitizers find in a few what they find in all.
int Batches() {
  const char* sanitizers = std::getenv("DOCMEM_SANITIZE");
  return sanitizers == nullptr || *sanitizers == '\0' ? 200 : 20;
}

constexpr int kRequests = 24;

class BatchInvarianceTest : public ::testing::TestWithParam<std::string> {
 protected:
  BatchInvarianceTest() {
    const std::string text =
        "The ferry leaves the island at six in the morning and comes back at noon; in winter it "
        "stays in the harbour whenever the wind blows from the north. ";
    std::string document;
    for (const uint32_t ppm : {0U, 500'000U, 900'000U, 1'000'000U}) {
      document += text;
      caches_.push_back(
          Ingest(*engine_, engine_->EncodeContext("", document, 64), {.ratio_ppm = ppm}));
    }
    for (int i = 0; i < kRequests; ++i) requests_.push_back(RandomRequest());
    for (const SequenceRequest& request : requests_) alone_.push_back(RunAlone(engine_, request));
  }

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
  const std::shared_ptr<const Engine> engine_ = TinyEngine("tiny-llama", GetParam());
  std::vector<std::shared_ptr<const Cache>> caches_;
  const std::vector<std::shared_ptr<const Adapter>> adapters_ = {
      nullptr, GoldenAdapter(*engine_, "all-modules"), GoldenAdapter(*engine_, "query-value"),
      GoldenAdapter(*engine_, "rslora")};
  std::vector<SequenceRequest> requests_;
  std::vector<Answer> alone_;
};

TEST_P(BatchInvarianceTest, AQueryHasTheSameBitsAloneAndInAnyOf200MixedBatches) {
  size_t compared = 0;
  const int batches = Batches();
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

INSTANTIATE_TEST_SUITE_P(Dtypes, BatchInvarianceTest, ::testing::Values("float32", "bfloat16"));

}  // namespace
}  // namespace docmem::engine
