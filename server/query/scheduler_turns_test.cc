// Who loads, who runs, and who passes whom.
#include <gtest/gtest.h>

#include <deque>

#include "absl/strings/str_cat.h"
#include "server/errors/error.h"
#include "server/query/scheduler_fixture.h"

namespace docmem::server {
namespace {

class SchedulerTurnsTest : public SchedulerTest {
 protected:
  using SchedulerTest::SchedulerTest;

  void ExpectAnswered(const std::shared_ptr<RecordingSink>& sink) {
    EXPECT_TRUE(sink->WaitClosed());
    EXPECT_TRUE(sink->status.ok()) << sink->status;
  }

  /// Until `Notify` no load begins.
  std::shared_ptr<TestEvent> HoldLoads() {
    auto go = std::make_shared<TestEvent>();
    for (int i = 0; i < 2; ++i) parts_.loaders.Run([go] { go->WaitFor(kPatience); });
    return go;
  }

  void WaitForLoading(uint32_t count) {
    const absl::Time limit = absl::Now() + kPatience;
    while (scheduler_->Counts().loading != count && absl::Now() < limit) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    EXPECT_EQ(scheduler_->Counts().loading, count);
  }

  uint32_t LeasesOf(const std::string& document) {
    uint32_t leases = 0;
    for (const ResidentMemory& memory : parts_.memories.Residents()) {
      if (memory.document.id == document) leases += memory.resident.leases;
    }
    return leases;
  }
};

TEST_F(SchedulerTurnsTest, QuestionsOnLoadedMemoriesPassThoseThatLoad) {
  for (const char* id : {"d", "e", "f", "g"}) parts_.Publish(id, {900'000});
  MakeScheduler({.max_sequences = 2});
  ExpectAnswered(Submit(Ask("d", "loads it")));
  const auto go = HoldLoads();
  std::vector<std::shared_ptr<RecordingSink>> cold;
  for (const char* id : {"e", "f", "g"}) cold.push_back(Submit(Ask(id, id)));
  WaitForLoading(2);
  for (int i = 0; i < 3; ++i) ExpectAnswered(Submit(Ask("d", absl::StrCat("warm ", i))));
  EXPECT_EQ(scheduler_->Counts().waiting, 1U) << "no more load than may run";
  for (const auto& sink : cold) EXPECT_FALSE(sink->closed.HasHappened());
  go->Notify();
  for (const auto& sink : cold) ExpectAnswered(sink);
}

TEST_F(SchedulerTurnsTest, OneThatHasLoadedGetsTheNextSlotOrGivesItsMemoriesBack) {
  for (const char* id : {"d", "e", "f"}) parts_.Publish(id, {900'000});
  MakeScheduler({.max_sequences = 1});
  ExpectAnswered(Submit(Ask("d", "loads it")));
  for (const bool ended : {true, false}) {
    const std::string cold = ended ? "e" : "f";
    const auto go = HoldLoads();
    const auto sink = Submit(Ask(cold, cold));
    WaitForLoading(1);
    const auto running = StartEndless();
    const auto later = Submit(Ask("d", "later"));
    go->Notify();
    WaitForLoading(0);
    EXPECT_EQ(LeasesOf(cold), 1U);
    EXPECT_EQ(scheduler_->Counts().waiting, 2U);
    if (ended) {
      EXPECT_TRUE(scheduler_->End("tester", cold, absl::CancelledError("enough")));
      EXPECT_TRUE(sink->WaitClosed());
      EXPECT_EQ(LeasesOf(cold), 0U);
    }
    EXPECT_TRUE(scheduler_->End("tester", "endless", absl::CancelledError("enough")));
    EXPECT_TRUE(running->WaitClosed());
    ExpectAnswered(later);
    if (ended) continue;
    EXPECT_TRUE(sink->closed.HasHappened()) << "it came before";
    ExpectAnswered(sink);
    EXPECT_GT(sink->finished->queue, absl::ZeroDuration());
    EXPECT_GT(sink->finished->load, absl::ZeroDuration());
    EXPECT_GT(sink->finished->prefill, absl::ZeroDuration());
  }
}

class NarrowSchedulerTest : public SchedulerTurnsTest {
 protected:
  NarrowSchedulerTest() : SchedulerTurnsTest({.device_budget_bytes = 2 * CacheBytes()}) {}
  static uint64_t CacheBytes() {
    return TestParts().Publish("d", {900'000}).caches.front().spec.device_bytes;
  }
};

TEST_F(NarrowSchedulerTest, QuestionsOnPinnedMemoriesPassThoseThatWaitForBytes) {
  store::Document pinned = parts_.Publish("p", {900'000});
  for (const char* id : {"d", "e", "f", "g"}) parts_.Publish(id, {900'000});
  MakeScheduler({.max_sequences = 3});
  pinned.spec.pinned = true;
  parts_.memories.SetPins(pinned, nullptr);
  ExpectAnswered(Submit(Ask("p", "loads it")));
  const auto running = StartEndless();
  std::vector<std::shared_ptr<RecordingSink>> cold;
  for (const char* id : {"e", "f", "g"}) cold.push_back(Submit(Ask(id, id)));
  WaitForLoading(3);
  absl::SleepFor(absl::Milliseconds(1100));  // the patience of those that wait for bytes
  for (int i = 0; i < 3; ++i) ExpectAnswered(Submit(Ask("p", absl::StrCat("warm ", i))));
  for (const auto& sink : cold) EXPECT_FALSE(sink->closed.HasHappened());
  EXPECT_TRUE(scheduler_->End("tester", "endless", absl::CancelledError("enough")));
  EXPECT_TRUE(running->WaitClosed());
  for (const auto& sink : cold) ExpectAnswered(sink);
}

TEST_F(SchedulerTurnsTest, BatchQuestionsLeaveAQuarterOfTheQueueToInteractiveOnes) {
  parts_.Publish("d", {900'000});
  Scheduler* const scheduler = MakeScheduler({.max_queue = 4, .max_sequences = 1});
  const auto running = StartEndless();
  const auto batch = [](const char* id) {
    Question question = Ask("d", id);
    question.priority = Priority::kBatch;
    return question;
  };
  std::vector<std::shared_ptr<RecordingSink>> waiting;
  for (const char* id : {"b1", "b2", "b3"}) waiting.push_back(Submit(batch(id)));
  const auto refused = std::make_shared<RecordingSink>();
  EXPECT_EQ(store::ReasonOf(scheduler->Submit(batch("b4"), refused)), reason::kQueueFull);
  waiting.push_back(Submit(Ask("d", "person")));
  EXPECT_EQ(store::ReasonOf(scheduler->Submit(Ask("d", "one more"), refused)), reason::kQueueFull);
  EXPECT_TRUE(scheduler->End("tester", "endless", absl::CancelledError("enough")));
  EXPECT_TRUE(running->WaitClosed());
  for (const auto& sink : waiting) ExpectAnswered(sink);
}

TEST_F(SchedulerTurnsTest, ABatchQuestionComesUpUnderSteadyInteractiveLoad) {
  parts_.Publish("d", {900'000});
  MakeScheduler({.max_sequences = 1, .batch_delay = absl::Milliseconds(200)});
  std::deque<std::shared_ptr<RecordingSink>> people;
  int asked = 0;
  const auto ask = [&] {
    Question question = Ask("d", absl::StrCat("person ", asked++));
    question.max_tokens = 30;
    people.push_back(Submit(std::move(question)));
  };
  while (asked < 8) ask();
  Question bulk = Ask("d", "bulk");
  bulk.priority = Priority::kBatch;
  const auto batch = Submit(std::move(bulk));
  const absl::Time limit = absl::Now() + absl::Seconds(20);
  while (!batch->closed.HasHappened() && absl::Now() < limit) {
    ExpectAnswered(people.front());
    people.pop_front();
    ask();
  }
  EXPECT_TRUE(batch->closed.HasHappened()) << asked << " interactive questions went first";
  for (const auto& sink : people) ExpectAnswered(sink);
  ExpectAnswered(batch);
}

class SignallingSink : public RecordingSink {
 public:
  void OnStarted(const AnswerStarted& value) override {
    RecordingSink::OnStarted(value);
    has_started = true;
  }
  std::atomic<bool> has_started{false};
};

TEST_F(SchedulerTurnsTest, AQuestionThatEndsWhileItGetsItsTurnIsCountedNoMore) {
  parts_.Publish("d", {900'000});
  Scheduler* const scheduler = MakeScheduler({.max_queue = 1, .max_sequences = 1});
  ExpectAnswered(Submit(Ask("d", "loads it")));
  const absl::Time limit = absl::Now() + absl::Milliseconds(500);
  for (int i = 0; absl::Now() < limit; ++i) {
    const auto sink = std::make_shared<SignallingSink>();
    const std::string id = absl::StrCat("r", i);
    const absl::Status status = scheduler->Submit(Ask("d", id), sink);
    ASSERT_TRUE(status.ok()) << status << ", though nobody else is there";
    while (!sink->has_started) {
    }
    const absl::Time moment = absl::Now() + absl::Nanoseconds(i * 37 % 3000);
    while (absl::Now() < moment) {
    }
    scheduler->End("tester", id, absl::CancelledError("cut"));
    EXPECT_TRUE(sink->WaitClosed());
  }
  ExpectAnswered(Submit(Ask("d", "finds its slot")));
}

}  // namespace
}  // namespace docmem::server
