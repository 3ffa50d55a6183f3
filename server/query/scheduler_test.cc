#include "server/query/scheduler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/own_kv.h"
#include "server/errors/error.h"
#include "server/runtime/test_event.h"
#include "server/runtime/testing.h"

namespace docmem::server {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

class RecordingSink : public AnswerSink {
 public:
  void OnStarted(const AnswerStarted& value) override {
    EXPECT_FALSE(started.has_value());
    started = value;
  }
  void OnProgress(const AnswerProgress& progress) override {
    queue_position = progress.queue_position;
    ++progress_messages;
  }
  void OnDelta(AnswerDelta delta) override {
    EXPECT_TRUE(started.has_value());
    text += delta.text;
    tokens.insert(tokens.end(), delta.token_ids.begin(), delta.token_ids.end());
    logprobs.insert(logprobs.end(), delta.logprobs.begin(), delta.logprobs.end());
    if (!first_token.HasHappened()) first_token.Notify();
  }
  void OnFinished(const AnswerFinished& value) override { finished = value; }
  void OnClosed(const absl::Status& end) override {
    status = end;
    closed.Notify();
  }
  bool WaitClosed() { return closed.WaitFor(kPatience); }

  std::optional<AnswerStarted> started;
  std::atomic<int> progress_messages{0};
  std::atomic<uint32_t> queue_position{0};
  std::string text;
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  std::optional<AnswerFinished> finished;
  absl::Status status;
  TestEvent first_token;
  TestEvent closed;
};

class SchedulerTest : public testing::Test {
 protected:
  ~SchedulerTest() override { parts_.StopThreads(); }

  /// Once per test.
  Scheduler* MakeScheduler(SchedulerOptions options = {}) {
    scheduler_ = std::make_unique<Scheduler>(SchedulerParts{.engine = TinyEngine(),
                                                            .store = parts_.store.get(),
                                                            .memories = &parts_.memories,
                                                            .loop = &parts_.loop,
                                                            .timer = &parts_.timer,
                                                            .executor = &parts_.executor,
                                                            .metrics = &parts_.metrics,
                                                            .build_missing = build_missing_},
                                             options);
    return scheduler_.get();
  }

  static Question Ask(const std::string& document, const std::string& request_id) {
    Question question;
    question.principal = "tester";
    question.request_id = request_id;
    question.document = {"default", document};
    question.question = "Which lamp is lit?";
    question.max_tokens = 6;
    return question;
  }

  /// The question "endless" on document d; has begun to answer.
  std::shared_ptr<RecordingSink> StartEndless() {
    const auto sink = std::make_shared<RecordingSink>();
    Question endless = Ask("d", "endless");
    endless.max_tokens = 100'000;
    EXPECT_TRUE(scheduler_->Submit(std::move(endless), sink).ok());
    EXPECT_TRUE(sink->first_token.WaitFor(kPatience));
    return sink;
  }

  TestParts parts_;
  BuildMissingCache build_missing_;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_F(SchedulerTest, AQuestionIsAnsweredFromTheStoredCacheAlone) {
  parts_.Publish("d", {900'000});
  Scheduler* const scheduler = MakeScheduler();
  const auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(scheduler->Submit(Ask("d", "r"), sink).ok());
  ASSERT_TRUE(sink->WaitClosed());
  ASSERT_TRUE(sink->status.ok()) << sink->status;
  EXPECT_EQ(sink->started->mode, engine::Mode::kBase);
  EXPECT_EQ(sink->started->ratio_ppm, 900'000U);
  EXPECT_EQ(sink->finished->document_tokens_prefilled, 0U);
  EXPECT_LE(sink->finished->answer_tokens, 6U);
  EXPECT_EQ(sink->tokens.size(), sink->logprobs.size());
  EXPECT_EQ(scheduler->Counts().running, 0U);
}

TEST_F(SchedulerTest, TheCurrentAdapterIsOnUnlessTheModeSaysBase) {
  const store::Document document = parts_.Publish("d", {0});
  const store::Adapter adapter = parts_.PublishAdapter(document.key, "all-modules");
  Scheduler* const scheduler = MakeScheduler();
  const auto with = std::make_shared<RecordingSink>();
  const auto base = std::make_shared<RecordingSink>();
  Question ask_base = Ask("d", "base");
  ask_base.mode = engine::Mode::kBase;
  ASSERT_TRUE(scheduler->Submit(Ask("d", "with"), with).ok());
  ASSERT_TRUE(scheduler->Submit(std::move(ask_base), base).ok());
  ASSERT_TRUE(with->WaitClosed());
  ASSERT_TRUE(base->WaitClosed());
  ASSERT_TRUE(with->status.ok()) << with->status;
  EXPECT_EQ(with->started->mode, engine::Mode::kBaseKvAdapterDecode);
  EXPECT_EQ(with->started->adapter_hash, adapter.spec.hash);
  EXPECT_EQ(base->started->adapter_version, 0U);
  EXPECT_NE(with->logprobs, base->logprobs);
}

TEST_F(SchedulerTest, ScoreGivesOneLogProbabilityPerTokenOfTheAnswerAndItsEnd) {
  parts_.Publish("d", {0});
  Scheduler* const scheduler = MakeScheduler();
  const auto sink = std::make_shared<RecordingSink>();
  Question question = Ask("d", "r");
  question.answer_to_score = "the lamp in room 7";
  ASSERT_TRUE(scheduler->Submit(std::move(question), sink).ok());
  ASSERT_TRUE(sink->WaitClosed());
  ASSERT_TRUE(sink->status.ok()) << sink->status;
  EXPECT_EQ(sink->tokens, TinyEngine()->prompt_format().AnswerIds("the lamp in room 7"));
  EXPECT_EQ(sink->finished->reason, AnswerFinished::Reason::kScored);
}

TEST_F(SchedulerTest, WhatTheRegistryLacksIsRefusedByName) {
  parts_.Publish("d", {900'000});
  Scheduler* const scheduler = MakeScheduler();
  struct Case {
    const char* reason;
    std::function<void(Question&)> change;
  };
  const Case cases[] = {
      {reason::kDocumentNotFound, [](Question& q) { q.document.id = "other"; }},
      {reason::kCollectionNotFound, [](Question& q) { q.document.collection = "other"; }},
      {reason::kCacheNotFound, [](Question& q) { q.ratio_ppm = 500'000; }},
      {reason::kCacheNotFound, [](Question& q) { q.cache_id = "abc"; }},
      {reason::kAdapterNotFound, [](Question& q) { q.adapter_version = 3; }},
      {reason::kNoCurrentAdapter, [](Question& q) { q.mode = engine::Mode::kBaseKvAdapterDecode; }},
      {reason::kInvalidField,
       [](Question& q) {
         q.mode = engine::Mode::kBase;
         q.adapter_version = 1;
       }},
      {reason::kInvalidField,
       [](Question& q) {
         q.mode = engine::Mode::kAdapterPrefill;
         q.scope = engine::AdapterScope::kAnswerOnly;
       }},
      {reason::kNoCurrentAdapter, [](Question& q) { q.mode = engine::Mode::kAdapterPrefill; }},
      {reason::kContextTooLong, [](Question& q) { q.max_tokens = 4'000'000; }},
  };
  for (const Case& one : cases) {
    const auto sink = std::make_shared<RecordingSink>();
    Question question = Ask("d", "r");
    one.change(question);
    ASSERT_TRUE(scheduler->Submit(std::move(question), sink).ok());
    ASSERT_TRUE(sink->WaitClosed());
    EXPECT_EQ(store::ReasonOf(sink->status), one.reason) << sink->status;
    EXPECT_FALSE(sink->started.has_value());
  }
}

TEST_F(SchedulerTest, CachesOfOneRatioWithTwoSystemTextsMustBeChosenById) {
  const store::Document document = parts_.Publish("d", {900'000, 0});
  Scheduler* const scheduler = MakeScheduler();
  const auto sink = std::make_shared<RecordingSink>();
  Question question = Ask("d", "r");
  question.cache_id = document.caches[1].spec.id;
  ASSERT_TRUE(scheduler->Submit(std::move(question), sink).ok());
  ASSERT_TRUE(sink->WaitClosed());
  EXPECT_EQ(sink->started->ratio_ppm, 0U);
}

TEST_F(SchedulerTest, AFullQueueRefusesAtOnceAndALiveRequestIdIsTaken) {
  parts_.Publish("d", {900'000});
  Scheduler* const scheduler = MakeScheduler({.max_queue = 1, .max_sequences = 1});
  const auto running = StartEndless();

  const auto waiting = std::make_shared<RecordingSink>();
  ASSERT_TRUE(scheduler->Submit(Ask("d", "waiting"), waiting).ok());
  const auto refused = std::make_shared<RecordingSink>();
  EXPECT_EQ(store::ReasonOf(scheduler->Submit(Ask("d", "third"), refused)), reason::kQueueFull);
  EXPECT_EQ(store::ReasonOf(scheduler->Submit(Ask("d", "waiting"), refused)),
            reason::kRequestIdInUse);
  EXPECT_FALSE(refused->closed.HasHappened());

  EXPECT_TRUE(scheduler->End("tester", "endless", absl::CancelledError("enough")));
  ASSERT_TRUE(running->WaitClosed());
  EXPECT_EQ(running->status, absl::CancelledError("enough"));
  ASSERT_TRUE(waiting->WaitClosed());
  EXPECT_TRUE(waiting->status.ok()) << waiting->status;
}

TEST_F(SchedulerTest, BatchQuestionsLetInteractiveOnesGoFirst) {
  parts_.Publish("d", {900'000});
  Scheduler* const scheduler =
      MakeScheduler({.max_sequences = 1, .heartbeat = absl::Milliseconds(5)});
  const auto running = StartEndless();

  const auto batch = std::make_shared<RecordingSink>();
  const auto interactive = std::make_shared<RecordingSink>();
  Question bulk = Ask("d", "bulk");
  bulk.priority = Priority::kBatch;
  bulk.max_tokens = 100'000;
  ASSERT_TRUE(scheduler->Submit(std::move(bulk), batch).ok());
  ASSERT_TRUE(scheduler->Submit(Ask("d", "person"), interactive).ok());
  const absl::Time limit = absl::Now() + kPatience;
  while (batch->queue_position < 1 && absl::Now() < limit) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(scheduler->End("tester", "endless", absl::CancelledError("enough")));
  ASSERT_TRUE(interactive->WaitClosed());
  EXPECT_TRUE(interactive->status.ok()) << interactive->status;
  EXPECT_FALSE(batch->closed.HasHappened());
  ASSERT_TRUE(batch->first_token.WaitFor(kPatience));
  EXPECT_TRUE(scheduler->End("tester", "bulk", absl::CancelledError("enough")));
  ASSERT_TRUE(batch->WaitClosed());
}

TEST_F(SchedulerTest, QuestionsWaitForRoomForTheirKeysAndValues) {
  parts_.Publish("d", {900'000});
  const uint64_t one = TinyEngine()->KvBytes(engine::OwnKv::MostCapacity(50'000));
  Scheduler* const scheduler = MakeScheduler({.max_sequences = 4, .kv_budget_bytes = one * 3 / 2});
  const auto running = std::make_shared<RecordingSink>();
  const auto waiting = std::make_shared<RecordingSink>();
  const auto never = std::make_shared<RecordingSink>();
  const auto submit = [&](const char* id, uint32_t tokens, const auto& sink) {
    Question question = Ask("d", id);
    question.max_tokens = tokens;
    ASSERT_TRUE(scheduler->Submit(std::move(question), sink).ok());
  };
  submit("running", 50'000, running);
  ASSERT_TRUE(running->first_token.WaitFor(kPatience));
  submit("never", 80'000, never);
  ASSERT_TRUE(never->WaitClosed());
  EXPECT_EQ(store::ReasonOf(never->status), reason::kLimitExceeded) << never->status;
  submit("waiting", 40'000, waiting);
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(scheduler->Counts().waiting, 1U);
  EXPECT_TRUE(scheduler->End("tester", "running", absl::CancelledError("enough")));
  ASSERT_TRUE(waiting->first_token.WaitFor(kPatience));
  EXPECT_TRUE(scheduler->End("tester", "waiting", absl::CancelledError("enough")));
  ASSERT_TRUE(waiting->WaitClosed());
}

TEST_F(SchedulerTest, MemoriesOfWaitingQuestionsAreLoadedAhead) {
  parts_.Publish("d", {900'000});
  const store::Document next = parts_.Publish("next", {900'000});
  const store::Adapter adapter = parts_.PublishAdapter(next.key, "all-modules");
  Scheduler* const scheduler = MakeScheduler({.max_sequences = 1});
  const auto running = StartEndless();
  const auto waiting = std::make_shared<RecordingSink>();
  ASSERT_TRUE(scheduler->Submit(Ask("next", "waiting"), waiting).ok());
  const absl::Time limit = absl::Now() + kPatience;
  const auto loaded = [&] {
    return parts_.memories.IsLoaded(next.key, next.caches[0]) && parts_.memories.IsLoaded(adapter);
  };
  while (!loaded() && absl::Now() < limit) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(loaded());
  EXPECT_FALSE(waiting->closed.HasHappened());
  EXPECT_TRUE(scheduler->End("tester", "endless", absl::CancelledError("enough")));
  ASSERT_TRUE(waiting->WaitClosed());
  EXPECT_TRUE(waiting->status.ok()) << waiting->status;
}

TEST_F(SchedulerTest, EndReachesOnlyTheOwnersQuestionAndIsIdempotent) {
  parts_.Publish("d", {900'000});
  Scheduler* const scheduler = MakeScheduler();
  const auto sink = std::make_shared<RecordingSink>();
  Question endless = Ask("d", "r");
  endless.max_tokens = 100'000;
  ASSERT_TRUE(scheduler->Submit(std::move(endless), sink).ok());
  EXPECT_FALSE(scheduler->End("stranger", "r", absl::CancelledError("")));
  EXPECT_TRUE(scheduler->End("tester", "r", absl::CancelledError("")));
  ASSERT_TRUE(sink->WaitClosed());
  EXPECT_FALSE(scheduler->End("tester", "r", absl::CancelledError("")));
}

TEST_F(SchedulerTest, ADeadlineActsWhileWaitingAndWhileRunning) {
  parts_.Publish("d", {900'000});
  Scheduler* const scheduler = MakeScheduler({.max_sequences = 1});
  const auto running = std::make_shared<RecordingSink>();
  const auto waiting = std::make_shared<RecordingSink>();
  Question endless = Ask("d", "endless");
  endless.max_tokens = 100'000;
  endless.deadline = absl::Now() + absl::Milliseconds(400);
  Question second = Ask("d", "second");
  second.deadline = absl::Now() + absl::Milliseconds(200);
  ASSERT_TRUE(scheduler->Submit(std::move(endless), running).ok());
  ASSERT_TRUE(running->first_token.WaitFor(kPatience));
  ASSERT_TRUE(scheduler->Submit(std::move(second), waiting).ok());
  ASSERT_TRUE(waiting->WaitClosed());
  ASSERT_TRUE(running->WaitClosed());
  EXPECT_EQ(store::ReasonOf(waiting->status), reason::kDeadlinePassed);
  EXPECT_EQ(store::ReasonOf(running->status), reason::kDeadlinePassed);
  EXPECT_FALSE(running->finished.has_value());
}

TEST_F(SchedulerTest, QuestionsEndedAtAnyMomentLeaveNothingBehind) {
  const store::Document document = parts_.Publish("d", {900'000});
  parts_.PublishAdapter(document.key, "all-modules");
  Scheduler* const scheduler = MakeScheduler({.max_sequences = 4});
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (int i = 0; i < 60; ++i) {
    const std::string id = absl::StrCat("r", i);
    sinks.push_back(std::make_shared<RecordingSink>());
    Question question = Ask("d", id);
    question.max_tokens = 200;
    ASSERT_TRUE(scheduler->Submit(std::move(question), sinks.back()).ok());
    absl::SleepFor(absl::Microseconds(i * 97 % 3000));
    scheduler->End("tester", id, absl::CancelledError("cut"));
  }
  for (const auto& sink : sinks) ASSERT_TRUE(sink->WaitClosed());
  const QueueCounts counts = scheduler->Counts();
  EXPECT_EQ(counts.waiting + counts.loading + counts.running, 0U);
  EXPECT_EQ(parts_.loop.running_sequences(), 0);
  EXPECT_EQ(parts_.loop.own_kv_bytes(), 0U);
  for (const ResidentMemory& memory : parts_.memories.Residents()) {
    EXPECT_EQ(memory.resident.leases, 0U);
  }
}

TEST_F(SchedulerTest, AMissingCacheIsBuiltFirstWhenAskedFor) {
  parts_.Publish("d", {900'000});
  build_missing_ = [](const CacheBuildRequest& request,
                      absl::AnyInvocable<void(absl::Status)> done) {
    EXPECT_EQ(request.key.id, "d");
    EXPECT_EQ(request.compressions.front().ratio_ppm, 500'000U);
    EXPECT_EQ(request.maker, CacheMaker{});
    done(absl::ResourceExhaustedError("no room"));
  };
  Scheduler* const scheduler = MakeScheduler();
  const auto sink = std::make_shared<RecordingSink>();
  Question question = Ask("d", "r");
  question.ratio_ppm = 500'000;
  question.build_if_missing = true;
  ASSERT_TRUE(scheduler->Submit(std::move(question), sink).ok());
  ASSERT_TRUE(sink->WaitClosed());
  EXPECT_EQ(sink->status, absl::ResourceExhaustedError("no room"));
}

TEST_F(SchedulerTest, TheBuiltCacheIsOfTheModeAndTheAdapterThatWereAdmitted) {
  const store::Document document = parts_.Publish("d", {900'000});
  parts_.PublishAdapter(document.key, "all-modules");
  build_missing_ = [&](const CacheBuildRequest& request,
                       absl::AnyInvocable<void(absl::Status)> done) {
    EXPECT_EQ(request.maker.mode, engine::Mode::kBaseScoreAdapterPrefill);
    EXPECT_EQ(request.maker.adapter_version, 1U);
    EXPECT_EQ(request.compressions.front().profile, engine::Profile::kKnorm);
    // Too late for this question, which then finds its own cache absent.
    EXPECT_EQ(parts_.PublishAdapter(document.key, "rslora").version, 2U);
    done(absl::OkStatus());
  };
  Scheduler* const scheduler = MakeScheduler();
  const auto sink = std::make_shared<RecordingSink>();
  Question question = Ask("d", "r");
  question.mode = engine::Mode::kBaseScoreAdapterPrefill;
  question.ratio_ppm = 500'000;
  question.profile = engine::Profile::kKnorm;
  question.build_if_missing = true;
  ASSERT_TRUE(scheduler->Submit(std::move(question), sink).ok());
  ASSERT_TRUE(sink->WaitClosed());
  EXPECT_EQ(store::ReasonOf(sink->status), reason::kCacheNotFound) << sink->status;
}

TEST_F(SchedulerTest, ProgressComesWhileAQuestionWaits) {
  parts_.Publish("d", {900'000});
  Scheduler* const scheduler =
      MakeScheduler({.max_sequences = 1, .heartbeat = absl::Milliseconds(5)});
  const auto running = StartEndless();
  const auto waiting = std::make_shared<RecordingSink>();
  ASSERT_TRUE(scheduler->Submit(Ask("d", "waiting"), waiting).ok());
  const absl::Time limit = absl::Now() + kPatience;
  while (waiting->progress_messages < 2 && absl::Now() < limit) {
    absl::SleepFor(absl::Milliseconds(2));
  }
  EXPECT_GE(waiting->progress_messages, 2);
  scheduler->EndAll(absl::UnavailableError("over"));
  ASSERT_TRUE(running->WaitClosed());
  ASSERT_TRUE(waiting->WaitClosed());
  EXPECT_EQ(waiting->status, absl::UnavailableError("over"));
}

TEST_F(SchedulerTest, AClosedSchedulerRefusesNewQuestionsAndReopens) {
  parts_.Publish("d", {900'000});
  Scheduler* const scheduler = MakeScheduler();
  scheduler->Close(absl::UnavailableError("draining"));
  const auto sink = std::make_shared<RecordingSink>();
  EXPECT_EQ(scheduler->Submit(Ask("d", "r"), sink), absl::UnavailableError("draining"));
  scheduler->Reopen();
  ASSERT_TRUE(scheduler->Submit(Ask("d", "r"), sink).ok());
  ASSERT_TRUE(sink->WaitClosed());
  EXPECT_TRUE(sink->status.ok()) << sink->status;
}

}  // namespace
}  // namespace docmem::server
