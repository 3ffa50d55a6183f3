#include "server/runtime/timer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <vector>

#include "absl/time/clock.h"
#include "server/runtime/test_event.h"

namespace docmem::server {
namespace {

TEST(TimerTest, CallbacksRunInTheOrderOfTheirTimes) {
  Timer timer;
  std::vector<int> order;
  TestEvent done;
  const absl::Time now = absl::Now();
  timer.At(now + absl::Milliseconds(60), [&] {
    order.push_back(3);
    done.Notify();
  });
  timer.At(now + absl::Milliseconds(20), [&] { order.push_back(1); });
  timer.At(now + absl::Milliseconds(40), [&] { order.push_back(2); });
  ASSERT_TRUE(done.WaitFor(absl::Seconds(30)));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(TimerTest, ATimeInThePastRunsAtOnce) {
  Timer timer;
  TestEvent done;
  timer.At(absl::InfinitePast(), [&] { done.Notify(); });
  EXPECT_TRUE(done.WaitFor(absl::Seconds(30)));
}

TEST(TimerTest, AnInfiniteTimeNeverRunsAndDoesNotHoldUpOthers) {
  std::atomic<bool> never{false};
  TestEvent done;
  {
    Timer timer;
    timer.At(absl::InfiniteFuture(), [&] { never = true; });
    timer.At(absl::Now(), [&] { done.Notify(); });
    EXPECT_TRUE(done.WaitFor(absl::Seconds(30)));
  }
  EXPECT_FALSE(never);
}

TEST(TimerTest, ACancelledCallbackDoesNotRun) {
  std::atomic<bool> ran{false};
  Timer timer;
  const Timer::Id id = timer.At(absl::Now() + absl::Milliseconds(50), [&] { ran = true; });
  timer.Cancel(id);
  TestEvent later;
  timer.At(absl::Now() + absl::Milliseconds(100), [&] { later.Notify(); });
  ASSERT_TRUE(later.WaitFor(absl::Seconds(30)));
  EXPECT_FALSE(ran);
}

TEST(TimerTest, CancelWaitsForACallbackThatRuns) {
  std::atomic<bool> finished{false};
  TestEvent started;
  Timer timer;
  const Timer::Id id = timer.At(absl::Now(), [&] {
    started.Notify();
    absl::SleepFor(absl::Milliseconds(50));
    finished = true;
  });
  started.Wait();
  timer.Cancel(id);
  EXPECT_TRUE(finished);
}

TEST(TimerTest, ACallbackMayCancelItselfAndAddOthers) {
  Timer timer;
  TestEvent done;
  std::atomic<Timer::Id> id{0};
  TestEvent known;
  id = timer.At(absl::Now(), [&] {
    known.Wait();
    timer.Cancel(id);
    timer.At(absl::Now(), [&] { done.Notify(); });
  });
  known.Notify();
  EXPECT_TRUE(done.WaitFor(absl::Seconds(30)));
}

TEST(TimerTest, UnknownIdsAreIgnored) {
  Timer timer;
  timer.Cancel(0);
  timer.Cancel(12345);
}

}  // namespace
}  // namespace docmem::server
