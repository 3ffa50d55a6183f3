#include "engine/session.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "engine/formats/error.h"
#include "engine/testing.h"

namespace docmem::engine {
namespace {

using testing::Answer;
using testing::GoldenAdapter;
using testing::Ingest;
using testing::LargestGap;
using testing::RunAll;
using testing::RunAlone;
using testing::TinyEngine;

class SessionTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Cache> CacheOf(const std::string& document, uint32_t ppm = 500'000) const {
    return Ingest(*engine_, engine_->EncodeContext("", document, 64), {.ratio_ppm = ppm});
  }

  std::vector<int32_t> Question(const std::string& text) const {
    return engine_->prompt_format().QuestionIds({}, "", text);
  }

  SequenceRequest Ask(std::shared_ptr<const Cache> cache, const std::string& question,
                      std::shared_ptr<const Adapter> adapter = nullptr) const {
    return {.cache = std::move(cache),
            .adapter = std::move(adapter),
            .prompt_ids = Question(question),
            .max_tokens = 16};
  }

  const std::shared_ptr<const Engine> engine_ = TinyEngine("tiny-llama");
  const std::shared_ptr<const Cache> first_ =
      CacheOf("The library opens at nine and closes at six, but never on Mondays.");
  const std::shared_ptr<const Cache> second_ =
      CacheOf("Seven ships left the harbour; three of them came back before the winter.");
  const std::shared_ptr<const Adapter> adapter_a_ = GoldenAdapter(*engine_, "all-modules");
  const std::shared_ptr<const Adapter> adapter_b_ = GoldenAdapter(*engine_, "query-value");
};

TEST_F(SessionTest, AnswersDontDependOnWhatWasAskedBefore) {
  const std::shared_ptr<const Adapter> adapters[] = {adapter_a_, adapter_b_, nullptr, adapter_a_};
  Session session(engine_);
  std::vector<std::vector<int32_t>> answers;
  for (const auto& adapter : adapters) {
    const SequenceRequest request = Ask(first_, "When does it open?", adapter);
    answers.push_back(RunAll(session, {request}).front().ids);
    EXPECT_EQ(answers.back(), RunAlone(TinyEngine("tiny-llama"), request).ids);
  }
  EXPECT_EQ(answers[0], answers[3]);
  EXPECT_NE(answers[0], answers[2]);
}

TEST_F(SessionTest, AMixedBatchGivesTheAnswersOfSoloRuns) {
  const std::vector<SequenceRequest> requests = {
      Ask(first_, "When?", adapter_a_),          Ask(second_, "How many came back?", adapter_b_),
      Ask(first_, "What is closed on Mondays?"), Ask(second_, "Which harbour?"),
      Ask(first_, "Who?", adapter_b_),           Ask(second_, "When?", adapter_a_)};
  Session session(engine_);
  const std::vector<Answer> together = RunAll(session, requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    const Answer alone = RunAlone(engine_, requests[i]);
    EXPECT_EQ(together[i].ids, alone.ids) << i;
    EXPECT_LT(LargestGap(together[i].logprobs, alone.logprobs), 1e-4) << i;
    EXPECT_EQ(together[i].text, alone.text) << i;
  }
}

TEST_F(SessionTest, BaseRowsKeepTheirBitsWhateverAdaptersOtherRowsHave) {
  std::vector<std::vector<float>> base;
  for (const auto& adapter : {adapter_a_, adapter_b_, std::shared_ptr<const Adapter>()}) {
    Session session(engine_);
    SequenceRequest other = Ask(first_, "When?", adapter);
    other.answer_ids = Question("Perhaps at nine.");
    SequenceRequest plain = Ask(first_, "Why?");
    plain.answer_ids = Question("Perhaps at six.");
    base.push_back(RunAll(session, {other, plain}).back().logprobs);
  }
  EXPECT_EQ(base[0], base[1]);
  EXPECT_EQ(base[0], base[2]);
}

TEST_F(SessionTest, PromptsLongerThanAStepAreChunked) {
  const SequenceRequest request = Ask(first_, "When does the library open on other days?");
  const Answer whole = RunAlone(engine_, request);
  for (const int64_t rows : {1, 5, 13}) {
    Session session(engine_, {.max_rows_per_step = rows});
    session.Add(request);
    std::vector<float> logprobs;
    while (session.running() > 0) {
      for (const SequenceEvent& event : session.Step()) {
        logprobs.insert(logprobs.end(), event.logprobs.begin(), event.logprobs.end());
      }
      EXPECT_LE(session.last_step_rows(), rows);
      EXPECT_GE(session.last_step_rows(), 1);
    }
    EXPECT_LT(LargestGap(logprobs, whole.logprobs), 1e-4) << rows;
  }
}

TEST_F(SessionTest, MoreSequencesThanRowsAllFinish) {
  Session session(engine_, {.max_rows_per_step = 3});
  const std::vector<SequenceRequest> requests(7, Ask(first_, "When?"));
  const Answer alone = RunAlone(engine_, requests[0]);
  for (const Answer& answer : RunAll(session, requests)) {
    EXPECT_EQ(answer.ids, alone.ids);
  }
}

TEST_F(SessionTest, ScoringInChunksGivesOneLogProbabilityPerAnswerToken) {
  SequenceRequest request = Ask(first_, "When?", adapter_a_);
  request.answer_ids = engine_->prompt_format().AnswerIds("At nine in the morning.");
  const Answer whole = RunAlone(engine_, request);
  EXPECT_EQ(whole.finish, FinishReason::kScored);
  EXPECT_EQ(whole.ids, request.answer_ids);
  EXPECT_TRUE(whole.text.empty());
  Session session(engine_, {.max_rows_per_step = 4});
  const Answer chunked = RunAll(session, {request}).front();
  EXPECT_EQ(chunked.ids, request.answer_ids);
  EXPECT_LT(LargestGap(chunked.logprobs, whole.logprobs), 1e-4);
}

TEST_F(SessionTest, LogProbabilitiesOfAnAnswerAreThoseOfItsScore) {
  const SequenceRequest asked = Ask(first_, "When?", adapter_a_);
  const Answer answer = RunAlone(engine_, asked);
  SequenceRequest scored = asked;
  scored.answer_ids = answer.ids;
  EXPECT_LT(LargestGap(RunAlone(engine_, scored).logprobs, answer.logprobs), 1e-4);
}

TEST_F(SessionTest, TheScopeDecidesFromWhichTokenTheAdapterActs) {
  SequenceRequest request = Ask(first_, "When?", adapter_a_);
  request.answer_ids = engine_->prompt_format().AnswerIds("At nine.");
  const auto whole = RunAlone(engine_, request).logprobs;
  request.scope = AdapterScope::kAnswerOnly;
  const auto answer_only = RunAlone(engine_, request).logprobs;
  request.adapter = nullptr;
  const auto base = RunAlone(engine_, request).logprobs;
  EXPECT_GT(LargestGap(whole, answer_only), 1e-3);
  EXPECT_GT(LargestGap(base, answer_only), 1e-3);
}

TEST_F(SessionTest, TextIsTheDecodedAnswerWhereverItIsCut) {
  for (uint32_t tokens = 1; tokens <= 24; ++tokens) {
    SequenceRequest request = Ask(second_, "How many ships?");
    request.max_tokens = tokens;
    const Answer answer = RunAlone(engine_, request);
    std::vector<int32_t> ids = answer.ids;
    if (answer.finish == FinishReason::kEndOfTurn) {
      ids.pop_back();
    } else {
      EXPECT_EQ(answer.finish, FinishReason::kLength);
      EXPECT_EQ(ids.size(), tokens);
    }
    const std::string cut = answer.dropped_bytes > 0 ? "\uFFFD" : "";
    EXPECT_EQ(answer.text + cut, engine_->tokenizer().Decode(ids)) << tokens;
  }
}

TEST_F(SessionTest, AnAnswerEndsBeforeAStopString) {
  const SequenceRequest request = Ask(first_, "When?");
  const Answer whole = RunAlone(engine_, request);
  ASSERT_GT(whole.text.size(), 12U);
  size_t at = 5;
  while ((whole.text[at] & 0xC0) == 0x80) ++at;
  size_t end = at + 4;
  while ((whole.text[end] & 0xC0) == 0x80) ++end;
  SequenceRequest stopped = request;
  stopped.stop_strings = {"never there", whole.text.substr(at, end - at)};
  const Answer answer = RunAlone(engine_, stopped);
  EXPECT_EQ(answer.finish, FinishReason::kStopString);
  EXPECT_EQ(answer.text, whole.text.substr(0, whole.text.find(stopped.stop_strings[1])));
}

TEST_F(SessionTest, SampledAnswersRepeatWithTheirSeedInAnyBatch) {
  SequenceRequest request = Ask(first_, "When?");
  request.sampling = {.temperature = 1.0, .top_p = 0.9, .seed = 11};
  const Answer alone = RunAlone(engine_, request);
  SequenceRequest other = request;
  other.sampling.seed = 12;
  Session session(engine_);
  const std::vector<Answer> together = RunAll(session, {other, request, request});
  EXPECT_EQ(together[1].ids, alone.ids);
  EXPECT_EQ(together[2].ids, alone.ids);
  EXPECT_NE(together[0].ids, alone.ids);
}

TEST_F(SessionTest, CancellingAtAnyPointFreesEverything) {
  for (int steps = 0; steps < 12; ++steps) {
    Session session(engine_, {.max_rows_per_step = 8});
    const long users = first_.use_count();
    std::vector<SequenceId> ids;
    for (const auto& adapter : {adapter_a_, std::shared_ptr<const Adapter>(), adapter_b_}) {
      ids.push_back(session.Add(Ask(first_, "When does it open?", adapter)));
    }
    EXPECT_EQ(session.running(), 3);
    for (int i = 0; i < steps; ++i) {
      session.Step();
    }
    EXPECT_EQ(session.kv_bytes() > 0, steps > 0);
    for (const SequenceId id : ids) {
      session.Cancel(id);
    }
    EXPECT_EQ(session.running(), 0);
    EXPECT_EQ(session.kv_bytes(), 0U);
    EXPECT_EQ(first_.use_count(), users);
    EXPECT_TRUE(session.Step().empty());
    EXPECT_EQ(session.last_step_rows(), 0);
    session.Cancel(ids.front());
    session.Cancel(999);
  }
}

TEST_F(SessionTest, CacheAndAdapterAreHeldUntilTheEnd) {
  const long caches = first_.use_count();
  const long adapters = adapter_a_.use_count();
  Session session(engine_);
  RunAll(session, {Ask(first_, "When?", adapter_a_)});
  EXPECT_EQ(session.kv_bytes(), 0U);
  EXPECT_EQ(first_.use_count(), caches);
  EXPECT_EQ(adapter_a_.use_count(), adapters);
}

TEST_F(SessionTest, NanLogitsEndTheirOwnSequenceOnly) {
  LoraWeights broken = adapter_a_->weights();
  LoraPair& pair = broken.layers[1][static_cast<size_t>(Module::kDown)];
  pair.b = at::full_like(pair.b, std::nan(""));
  const auto adapter = std::make_shared<const Adapter>("broken", broken);
  Session session(engine_);
  const std::vector<Answer> answers =
      RunAll(session, {Ask(first_, "When?"), Ask(first_, "When?", adapter)});
  EXPECT_EQ(answers[0].ids, RunAlone(engine_, Ask(first_, "When?")).ids);
  ASSERT_TRUE(answers[1].error);
  EXPECT_FALSE(answers[1].finish);
  try {
    std::rethrow_exception(answers[1].error);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInternal);
  }
}

TEST_F(SessionTest, RefusedRequestsNameTheFieldAndLeaveTheSessionAsItWas) {
  const SequenceRequest good = Ask(first_, "When?");
  const std::pair<const char*, std::function<void(SequenceRequest&)>> cases[] = {
      {"cache", [](SequenceRequest& r) { r.cache = nullptr; }},
      {"prompt", [](SequenceRequest& r) { r.prompt_ids.clear(); }},
      {"prompt", [](SequenceRequest& r) { r.prompt_ids[0] = -1; }},
      {"prompt", [](SequenceRequest& r) { r.prompt_ids[0] = 600; }},
      {"answer", [](SequenceRequest& r) { r.answer_ids = {600}; }},
      {"max_tokens", [](SequenceRequest& r) { r.max_tokens = 0; }},
      {"prompt", [](SequenceRequest& r) { r.max_tokens = 131'072; }},
      {"temperature", [](SequenceRequest& r) { r.sampling.temperature = 3.0; }},
      {"stop_strings", [](SequenceRequest& r) { r.stop_strings = {""}; }}};
  Session session(engine_);
  for (const auto& [field, change] : cases) {
    SequenceRequest bad = good;
    change(bad);
    try {
      session.Add(bad);
      ADD_FAILURE() << field;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      EXPECT_EQ(error.field(), field);
    }
    EXPECT_EQ(session.running(), 0);
  }
}

TEST_F(SessionTest, TheLimitOfPositionsIsToldWithBothNumbers) {
  SequenceRequest request = Ask(first_, "When?");
  const int64_t used = first_->next_position() + static_cast<int64_t>(request.prompt_ids.size());
  request.max_tokens = static_cast<uint32_t>(engine_->config().max_positions - used);
  Session session(engine_);
  EXPECT_NO_THROW(session.Add(request));
  ++request.max_tokens;
  try {
    session.Add(request);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("131073"), std::string::npos) << text;
    EXPECT_NE(text.find("131072"), std::string::npos) << text;
  }
}

TEST_F(SessionTest, ARaggedCacheAnswersInAnyBatch) {
  const Context context = engine_->EncodeContext(
      "",
      "Nine bridges cross the river; the oldest is of wood and closed to carts. " +
          std::string(400, 'x'),
      64);
  const auto ragged =
      Ingest(*engine_, context, {.ratio_ppm = 300'000, .profile = Profile::kCompactorVllm});
  ASSERT_TRUE(ragged->Ragged(0) || ragged->Ragged(1));
  const std::vector<SequenceRequest> requests = {
      Ask(ragged, "How many?", adapter_a_), Ask(first_, "When?"), Ask(ragged, "Which is closed?")};
  Session session(engine_);
  const std::vector<Answer> together = RunAll(session, requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    const Answer alone = RunAlone(engine_, requests[i]);
    EXPECT_EQ(together[i].ids, alone.ids) << i;
    EXPECT_EQ(together[i].logprobs, alone.logprobs) << i;
  }
}

TEST_F(SessionTest, AHeadWithoutRowsSeesTheQuestionAlone) {
  const KeptRows& whole = first_->rows();
  const int64_t n = whole.keys.size(0), kept = n / 4;
  // Layer 0 as it was; in layer 1 the second head has nothing.
  const KeptRows rows{.keys = whole.keys.narrow(0, 0, n - kept),
                      .values = whole.values.narrow(0, 0, n - kept),
                      .positions = whole.positions.narrow(0, 0, n - kept),
                      .offsets = at::tensor({int64_t{0}, kept, 2 * kept, 3 * kept, 3 * kept})};
  const auto ragged = std::make_shared<const Cache>(first_->identity(), 2, 2, rows);
  SequenceRequest request = Ask(ragged, "When?");
  request.answer_ids = Question("At nine.");
  const Answer answer = RunAlone(engine_, request);
  ASSERT_EQ(answer.finish, FinishReason::kScored);
  for (const float logprob : answer.logprobs) {
    EXPECT_TRUE(std::isfinite(logprob) && logprob <= 0.0F) << logprob;
  }
}

TEST_F(SessionTest, ACacheThatAnAdapterWroteAnswersOnlyWithIt) {
  const Context context =
      engine_->EncodeContext("", "The ferry leaves at ten past every hour.", 64);
  for (const Mode mode : {Mode::kAdapterPrefill, Mode::kBaseScoreAdapterPrefill}) {
    const auto cache =
        Ingest(*engine_, context, {.ratio_ppm = 500'000}, {.mode = mode, .adapter = adapter_a_});
    Session session(engine_);
    EXPECT_NO_THROW(session.Add(Ask(cache, "When?", adapter_a_)));
    for (const auto& adapter : {std::shared_ptr<const Adapter>(), adapter_b_}) {
      try {
        session.Add(Ask(cache, "When?", adapter));
        ADD_FAILURE() << ModeName(mode);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kFailedPrecondition);
        EXPECT_EQ(error.field(), "adapter");
      }
      EXPECT_EQ(session.running(), 1);
    }
  }
}

TEST_F(SessionTest, ACacheOfAnotherModelIsRefused) {
  const auto other = TinyEngine("tiny-llama", "bfloat16");
  Session session(other);
  try {
    session.Add(Ask(first_, "When?"));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFailedPrecondition);
    EXPECT_EQ(error.field(), "dtype");
  }
}

}  // namespace
}  // namespace docmem::engine
