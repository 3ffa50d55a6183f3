#include "server/interceptors/open_calls.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "absl/time/clock.h"

namespace docmem::server {
namespace {

TEST(OpenCalls, ACallIsEndedOnceAtItsDeadline) {
  Timer timer;
  OpenCalls calls(&timer);
  std::promise<absl::Status> ended;
  const auto id = calls.Enter(absl::Now() + absl::Milliseconds(20),
                              [&](const absl::Status& status) { ended.set_value(status); });
  EXPECT_EQ(ended.get_future().get().code(), absl::StatusCode::kDeadlineExceeded);
  calls.CutAll(absl::UnavailableError("a second end would throw"));
  calls.Leave(id);
  EXPECT_EQ(calls.count(), 0U);
}

TEST(OpenCalls, ACallThatLeftIsNotEnded) {
  Timer timer;
  OpenCalls calls(&timer);
  std::atomic<int> ended{0};
  calls.Leave(calls.Enter(absl::Now() + absl::Milliseconds(30), [&](auto&) { ++ended; }));
  calls.CutAll(absl::UnavailableError("stop"));
  absl::SleepFor(absl::Milliseconds(60));
  EXPECT_EQ(ended, 0);
}

TEST(OpenCalls, StoppingWaitsForCallsAndEndsTheRest) {
  Timer timer;
  OpenCalls calls(&timer);
  EXPECT_TRUE(calls.WaitUntilEmpty(absl::Now()));
  const auto brief = calls.Enter(absl::InfiniteFuture(), {});
  OpenCalls::Id endless = 0;
  endless = calls.Enter(absl::InfiniteFuture(), [&](auto&) { calls.Leave(endless); });
  EXPECT_FALSE(calls.WaitUntilEmpty(absl::Now() + absl::Milliseconds(20)));
  calls.CutAll(absl::UnavailableError("stop"));
  EXPECT_EQ(calls.count(), 1U);
  std::thread last([&] { calls.Leave(brief); });
  EXPECT_TRUE(calls.WaitUntilEmpty(absl::InfiniteFuture()));
  last.join();
}

}  // namespace
}  // namespace docmem::server
