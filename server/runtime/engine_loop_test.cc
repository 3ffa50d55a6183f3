#include "server/runtime/engine_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "server/runtime/test_event.h"
#include "server/runtime/testing.h"

namespace docmem::server {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

class RecordingSink : public SequenceSink {
 public:
  void OnEvent(const engine::SequenceEvent& event) override {
    EXPECT_FALSE(closed.HasHappened());
    tokens.insert(tokens.end(), event.token_ids.begin(), event.token_ids.end());
    text += event.text;
    finished = finished || event.finish.has_value();
    if (!tokens.empty() && !first_token.HasHappened()) first_token.Notify();
  }
  void OnClosed(const absl::Status& end) override {
    status = end;
    closed.Notify();
  }

  std::vector<int32_t> tokens;
  std::string text;
  bool finished = false;
  absl::Status status;
  TestEvent first_token;
  TestEvent closed;
};

class CountingWork : public TensorWork {
 public:
  explicit CountingWork(int units) : units_(units) {}
  bool Step() override {
    ++done;
    if (done == throw_at) throw engine::Error(engine::ErrorKind::kInternal, "layer", "broken");
    return done >= units_;
  }
  void OnClosed(const absl::Status& end) override {
    status = end;
    closed.Notify();
  }

  std::atomic<int> done{0};
  int throw_at = -1;
  absl::Status status;
  TestEvent closed;

 private:
  const int units_;
};

class EngineLoopTest : public testing::Test {
 protected:
  engine::SequenceRequest Request(uint32_t max_tokens) {
    engine::SequenceRequest request;
    request.cache = TinyCache(TinyDocument(), 500'000);
    request.prompt_ids = TinyEngine()->prompt_format().QuestionIds({}, "", "Which lamp?");
    request.max_tokens = max_tokens;
    return request;
  }

  Metrics metrics_{"test"};
};

TEST_F(EngineLoopTest, ASequenceRunsToItsEndAndGivesItsMemoryBackBeforeItIsClosed) {
  EngineLoop loop(TinyEngine(), &metrics_, {});
  const auto sink = std::make_shared<RecordingSink>();
  engine::SequenceRequest request = Request(8);
  const std::weak_ptr<const engine::Cache> cache = request.cache;
  loop.Submit(std::move(request), sink);
  ASSERT_TRUE(sink->closed.WaitFor(kPatience));
  EXPECT_TRUE(sink->status.ok()) << sink->status;
  EXPECT_TRUE(sink->finished);
  EXPECT_FALSE(sink->tokens.empty());
  EXPECT_TRUE(cache.expired());
  EXPECT_EQ(loop.running_sequences(), 0);
}

TEST_F(EngineLoopTest, ACancelledSequenceEndsWithTheGivenStatus) {
  EngineLoop loop(TinyEngine(), &metrics_, {});
  const auto sink = std::make_shared<RecordingSink>();
  const EngineLoop::Ticket ticket = loop.Submit(Request(100'000), sink);
  ASSERT_TRUE(sink->first_token.WaitFor(kPatience));
  loop.Cancel(ticket, absl::CancelledError("enough"));
  ASSERT_TRUE(sink->closed.WaitFor(kPatience));
  EXPECT_EQ(sink->status, absl::CancelledError("enough"));
  EXPECT_EQ(loop.running_sequences(), 0);
  EXPECT_EQ(loop.own_kv_bytes(), 0U);
}

TEST_F(EngineLoopTest, ARefusedRequestIsClosedWithItsReasonAndOthersGoOn) {
  EngineLoop loop(TinyEngine(), &metrics_, {});
  const auto bad = std::make_shared<RecordingSink>();
  const auto good = std::make_shared<RecordingSink>();
  engine::SequenceRequest empty = Request(4);
  empty.prompt_ids.clear();
  loop.Submit(std::move(empty), bad);
  loop.Submit(Request(4), good);
  ASSERT_TRUE(bad->closed.WaitFor(kPatience));
  ASSERT_TRUE(good->closed.WaitFor(kPatience));
  EXPECT_TRUE(absl::IsInvalidArgument(bad->status)) << bad->status;
  EXPECT_TRUE(good->status.ok()) << good->status;
}

TEST_F(EngineLoopTest, WorkAdvancesBetweenDecodeStepsAndStreamsGoOn) {
  EngineLoop loop(TinyEngine(), &metrics_, {});
  const auto sink = std::make_shared<RecordingSink>();
  const EngineLoop::Ticket ticket = loop.Submit(Request(100'000), sink);
  ASSERT_TRUE(sink->first_token.WaitFor(kPatience));
  const auto work = std::make_shared<CountingWork>(20);
  loop.Post(work);
  ASSERT_TRUE(work->closed.WaitFor(kPatience));
  EXPECT_TRUE(work->status.ok());
  EXPECT_EQ(work->done, 20);
  EXPECT_FALSE(sink->closed.HasHappened());
  loop.Cancel(ticket, absl::CancelledError(""));
  ASSERT_TRUE(sink->closed.WaitFor(kPatience));
}

TEST_F(EngineLoopTest, WorkInShortUnitsGetsItsShareOfTheTimeBesideStreams) {
  EngineLoop loop(TinyEngine(), &metrics_, {.least_work_share = 0.5});
  const auto sink = std::make_shared<RecordingSink>();
  const auto work = std::make_shared<CountingWork>(1'000'000'000);
  const EngineLoop::Ticket stream = loop.Submit(Request(100'000), sink);
  ASSERT_TRUE(sink->first_token.WaitFor(kPatience));
  loop.Post(work);
  while (work->done < 100'000) absl::SleepFor(absl::Milliseconds(1));
  loop.Cancel(stream, absl::CancelledError("enough"));
  ASSERT_TRUE(sink->closed.WaitFor(kPatience));
  EXPECT_EQ(sink->status, absl::CancelledError("enough"));
  EXPECT_LT(sink->tokens.size(), 10'000U) << "a unit is far shorter than a step";
}

// Spins for a while in each unit and counts the time.
class SpinningWork : public TensorWork {
 public:
  bool Step() override {
    const absl::Time began = absl::Now();
    while (absl::Now() - began < absl::Microseconds(20)) {
    }
    spent_ns += absl::ToInt64Nanoseconds(absl::Now() - began);
    return false;
  }
  void OnClosed(const absl::Status&) override {}

  std::atomic<int64_t> spent_ns{0};
};

TEST_F(EngineLoopTest, UnlessSetOtherwiseWorkGetsATenthOfTheTimeAndStreamsTheRest) {
  EngineLoop loop(TinyEngine(), &metrics_, {});
  const auto sink = std::make_shared<RecordingSink>();
  loop.Submit(Request(100'000), sink);
  ASSERT_TRUE(sink->first_token.WaitFor(kPatience));
  const auto work = std::make_shared<SpinningWork>();
  const absl::Time began = absl::Now();
  loop.Post(work);
  while (work->spent_ns < 50'000'000) absl::SleepFor(absl::Milliseconds(1));
  const double share =
      absl::FDivDuration(absl::Nanoseconds(work->spent_ns.load()), absl::Now() - began);
  EXPECT_GT(share, 0.08) << "what passes beside steps and work counts against it here";
  loop.Stop(absl::CancelledError("enough"));
  EXPECT_GT(sink->tokens.size(), 10U);
}

// Shares are of time: a unit that was preempted is paid back, so counts of units wouldn't compare.
TEST_F(EngineLoopTest, BackgroundWorkLetsForegroundWorkPassAndKeepsItsShare) {
  EngineLoop loop(TinyEngine(), &metrics_, {.least_background_share = 0.1});
  const auto training = std::make_shared<SpinningWork>();
  loop.Post(training, WorkUrgency::kBackground);
  while (training->spent_ns == 0) absl::SleepFor(absl::Milliseconds(1));
  const auto short_one = std::make_shared<CountingWork>(1000);
  loop.Post(short_one);
  ASSERT_TRUE(short_one->closed.WaitFor(kPatience));

  const auto long_one = std::make_shared<SpinningWork>();
  loop.Post(long_one);
  while (long_one->spent_ns == 0) absl::SleepFor(absl::Milliseconds(1));  // training is alone
  const int64_t before = training->spent_ns;
  while (long_one->spent_ns < 300'000'000) absl::SleepFor(absl::Milliseconds(1));
  const int64_t trained = training->spent_ns - before;
  EXPECT_GT(trained, 0) << "a tenth of the time is the training's";
  EXPECT_LT(trained, long_one->spent_ns);
  loop.Stop(absl::CancelledError("enough"));
}

TEST_F(EngineLoopTest, WorkThatThrowsIsClosedWithTheStatusAndTheNextOneRuns) {
  EngineLoop loop(TinyEngine(), &metrics_, {});
  const auto broken = std::make_shared<CountingWork>(5);
  broken->throw_at = 2;
  const auto next = std::make_shared<CountingWork>(3);
  loop.Post(broken);
  loop.Post(next);
  ASSERT_TRUE(next->closed.WaitFor(kPatience));
  EXPECT_TRUE(absl::IsInternal(broken->status)) << broken->status;
  EXPECT_EQ(broken->done, 2);
  EXPECT_TRUE(next->status.ok());
}

TEST_F(EngineLoopTest, WithdrawnWorkStopsBeforeItsNextUnit) {
  EngineLoop loop(TinyEngine(), &metrics_, {});
  const auto endless = std::make_shared<CountingWork>(1'000'000'000);
  const EngineLoop::Ticket ticket = loop.Post(endless);
  while (endless->done == 0) absl::SleepFor(absl::Milliseconds(1));
  loop.Withdraw(ticket, absl::CancelledError("left"));
  ASSERT_TRUE(endless->closed.WaitFor(kPatience));
  EXPECT_EQ(endless->status, absl::CancelledError("left"));
  EXPECT_EQ(loop.waiting_work(), 0);
}

TEST_F(EngineLoopTest, StopClosesEverythingWithItsStatusAndRefusesWhatComesLater) {
  EngineLoop loop(TinyEngine(), &metrics_, {});
  const auto running = std::make_shared<RecordingSink>();
  const auto work = std::make_shared<CountingWork>(1'000'000'000);
  loop.Submit(Request(100'000), running);
  loop.Post(work);
  ASSERT_TRUE(running->first_token.WaitFor(kPatience));
  loop.Stop(absl::UnavailableError("stopping"));
  EXPECT_EQ(running->status, absl::UnavailableError("stopping"));
  EXPECT_EQ(work->status, absl::UnavailableError("stopping"));
  const auto late = std::make_shared<RecordingSink>();
  loop.Submit(Request(1), late);
  EXPECT_EQ(late->status, absl::UnavailableError("stopping"));
}

}  // namespace
}  // namespace docmem::server
