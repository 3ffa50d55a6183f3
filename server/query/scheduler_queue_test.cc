// Who waits, for what, and who goes first.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "engine/own_kv.h"
#include "server/errors/error.h"
#include "server/query/scheduler_fixture.h"

namespace docmem::server {
namespace {

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

TEST_F(SchedulerTest, PrincipalsAndCollectionsHaveLimitsOfTheirOwn) {
  parts_.Publish("d", {900'000});
  Scheduler* const scheduler = MakeScheduler({.max_sequences = 1});
  const auto running = StartEndless();
  const auto sink = std::make_shared<RecordingSink>();
  const auto submit = [&](const std::string& principal, const QuestionLimits& limits) {
    Question question = Ask("d", "second");
    question.principal = principal;
    question.limits = limits;
    return scheduler->Submit(std::move(question), sink);
  };
  EXPECT_EQ(store::ReasonOf(submit("tester", {.max_in_flight = 1})), reason::kQuotaMaxInFlight);
  ASSERT_TRUE(parts_.store
                  ->UpdateCollection("default", 0,
                                     [](store::CollectionSettings& settings) {
                                       settings.limits.max_in_flight = 1;
                                       return absl::OkStatus();
                                     })
                  .ok());
  const absl::Status refused = submit("other", {.max_in_flight = 1});
  EXPECT_EQ(store::ReasonOf(refused), reason::kQuotaMaxInFlight);
  EXPECT_NE(refused.message().find("collection 'default'"), absl::string_view::npos);

  EXPECT_TRUE(scheduler->End("tester", "endless", absl::CancelledError("enough")));
  ASSERT_TRUE(running->WaitClosed());
  ASSERT_TRUE(submit("other", {.max_in_flight = 1, .max_queued = 1}).ok());
  ASSERT_TRUE(sink->WaitClosed());
  EXPECT_TRUE(sink->status.ok()) << sink->status;
}

TEST_F(SchedulerTest, AnEndedQuestionStopsWaitingInTheCounts) {
  parts_.Publish("d", {900'000});
  Scheduler* const scheduler = MakeScheduler({.max_sequences = 1});
  const auto running = StartEndless();
  const auto submit = [&](const std::string& id, const std::shared_ptr<RecordingSink>& sink) {
    Question question = Ask("d", id);
    question.limits = {.max_queued = 1};
    return scheduler->Submit(std::move(question), sink);
  };
  const auto first = std::make_shared<RecordingSink>();
  const auto second = std::make_shared<RecordingSink>();
  ASSERT_TRUE(submit("first", first).ok());
  EXPECT_EQ(store::ReasonOf(submit("second", second)), reason::kQuotaMaxQueued);
  EXPECT_TRUE(scheduler->End("tester", "first", absl::CancelledError("enough")));
  ASSERT_TRUE(first->WaitClosed());
  ASSERT_TRUE(submit("second", second).ok());
  EXPECT_TRUE(scheduler->End("tester", "endless", absl::CancelledError("enough")));
  ASSERT_TRUE(running->WaitClosed());
  ASSERT_TRUE(second->WaitClosed());
  EXPECT_TRUE(second->status.ok()) << second->status;
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
