#include "server/runtime/executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

namespace docmem::server {
namespace {

TEST(Executor, NewWorkIsRefusedWhenTheQueueIsFullAndTakenWhenItEmpties) {
  Executor executor({.threads = 1, .max_queued = 2});
  std::promise<void> open;
  std::promise<void> began;
  ASSERT_TRUE(executor.TryRun([&] {
    began.set_value();
    open.get_future().wait();
  }));
  began.get_future().wait();
  EXPECT_TRUE(executor.TryRun([] {}));
  EXPECT_TRUE(executor.TryRun([] {}));
  EXPECT_FALSE(executor.TryRun([] { FAIL() << "a refused task ran"; }));
  EXPECT_EQ(executor.queued(), 2U);
  open.set_value();
  std::promise<void> done;
  executor.Run([&] { done.set_value(); });
  done.get_future().wait();
  EXPECT_TRUE(executor.TryRun([] {}));
}

TEST(Executor, CloseRunsWhatIsQueuedAndThenRefuses) {
  std::atomic<int> ran{0};
  Executor executor({.threads = 2});
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(executor.TryRun([&] { ++ran; }));
  executor.Close();
  EXPECT_EQ(ran, 100);
  EXPECT_FALSE(executor.TryRun([&] { ++ran; }));
  executor.Run([&] { ++ran; });
  EXPECT_EQ(ran, 101);
}

TEST(Executor, OneThreadKeepsTheOrderAndTasksMaySubmitTasks) {
  std::vector<int> order;
  Executor executor({.threads = 1});
  std::promise<void> done;
  executor.Run([&] {
    order.push_back(1);
    executor.Run([&] {
      order.push_back(3);
      done.set_value();
    });
    order.push_back(2);
  });
  done.get_future().wait();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

}  // namespace
}  // namespace docmem::server
