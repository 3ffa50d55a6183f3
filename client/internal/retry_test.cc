#include "client/internal/retry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "client/internal/rpc_status.h"
#include "client/testing/fake_clock.h"
#include "client/testing/fake_daemon.h"
#include "docmem/v1/errors.pb.h"

namespace docmem::client::internal {
namespace {

using ::testing::ElementsAre;
using testing::FakeClock;
using testing::Refusal;

constexpr RetryPolicy kSteady{.jitter = 0};

Outcome Refused(grpc::StatusCode code, const std::string& reason,
                std::optional<absl::Duration> delay = std::nullopt) {
  return {.status =
              FromGrpc(ToStatus(Refusal{.code = code, .reason = reason, .retry_delay = delay}))};
}

Outcome Lost() { return {.status = absl::UnavailableError("lost"), .lost = true}; }

// Tries with outcomes in order, the last one again and again.
class Script {
 public:
  explicit Script(std::vector<Outcome> outcomes) : outcomes_(std::move(outcomes)) {}

  absl::Status Run(Repeat repeat = Repeat::kSafe, absl::Duration timeout = absl::Seconds(60),
                   const CallOptions& options = {}, const RetryPolicy& policy = kSteady) {
    return RunWithRetries(policy, &clock, clock.Now() + timeout, repeat, options, [this] {
      const size_t last = outcomes_.size() - 1;
      return outcomes_[std::min(static_cast<size_t>(tries++), last)];
    });
  }

  FakeClock clock;
  int tries = 0;

 private:
  const std::vector<Outcome> outcomes_;
};

bool IsRetried(grpc::StatusCode code, const std::string& reason, Repeat repeat) {
  Script script({Refused(code, reason), Outcome{}});
  return script.Run(repeat).ok();
}

TEST(Retry, OnlyTheReasonsOfTheContractAreRetried) {
  const std::set<std::string> unavailable = {"STARTING", "DRAINING", "SHUTTING_DOWN",
                                             "REGISTRY_UNAVAILABLE", "ARTIFACTS_UNAVAILABLE"};
  const std::set<std::string> exhausted = {"QUEUE_FULL", "QUOTA_MAX_IN_FLIGHT", "QUOTA_MAX_QUEUED"};
  const auto* reasons = v1::ErrorReason_descriptor();
  for (int i = 0; i < reasons->value_count(); ++i) {
    const std::string name = reasons->value(i)->name();
    for (int code = 1; code <= 16; ++code) {
      const auto grpc_code = static_cast<grpc::StatusCode>(code);
      const bool expected =
          (grpc_code == grpc::StatusCode::UNAVAILABLE && unavailable.contains(name)) ||
          (grpc_code == grpc::StatusCode::RESOURCE_EXHAUSTED && exhausted.contains(name));
      EXPECT_EQ(IsRetried(grpc_code, name, Repeat::kSafe), expected) << name << ' ' << code;
    }
  }
}

TEST(Retry, RefusalsBeforeAnyWorkAreRetriedForEveryCall) {
  EXPECT_TRUE(IsRetried(grpc::StatusCode::UNAVAILABLE, "DRAINING", Repeat::kUnsafe));
  EXPECT_TRUE(IsRetried(grpc::StatusCode::RESOURCE_EXHAUSTED, "QUEUE_FULL", Repeat::kUnsafe));
  EXPECT_FALSE(IsRetried(grpc::StatusCode::UNAVAILABLE, "SHUTTING_DOWN", Repeat::kUnsafe));
  EXPECT_FALSE(IsRetried(grpc::StatusCode::UNAVAILABLE, "REGISTRY_UNAVAILABLE", Repeat::kUnsafe));
}

TEST(Retry, TheDaemonsDelayIsKept) {
  Script script({Refused(grpc::StatusCode::RESOURCE_EXHAUSTED, "QUEUE_FULL", absl::Seconds(7)),
                 Refused(grpc::StatusCode::UNAVAILABLE, "STARTING", absl::Milliseconds(1500)),
                 Outcome{}});
  EXPECT_TRUE(script.Run().ok());
  EXPECT_THAT(script.clock.sleeps(), ElementsAre(absl::Seconds(7), absl::Milliseconds(1500)));
}

TEST(Retry, ALostConnectionIsTriedAFewTimesWithGrowingDelays) {
  Script script({Lost()});
  EXPECT_EQ(script.Run().message(), "lost");
  EXPECT_EQ(script.tries, 5);
  EXPECT_THAT(script.clock.sleeps(), ElementsAre(absl::Milliseconds(100), absl::Milliseconds(200),
                                                 absl::Milliseconds(400), absl::Milliseconds(800)));
}

TEST(Retry, ALostConnectionIsNotRetriedWhereTheCallMayHaveHappened) {
  Script script({Lost(), Outcome{}});
  EXPECT_TRUE(absl::IsUnavailable(script.Run(Repeat::kUnsafe)));
  EXPECT_EQ(script.tries, 1);
}

TEST(Retry, NothingIsRetriedOnceTextWasDelivered) {
  Outcome lost = Lost();
  lost.delivered = true;
  Script script({lost, Outcome{}});
  EXPECT_TRUE(absl::IsUnavailable(script.Run()));
  Outcome refused = Refused(grpc::StatusCode::UNAVAILABLE, "SHUTTING_DOWN", absl::Seconds(1));
  refused.delivered = true;
  Script other({refused, Outcome{}});
  EXPECT_TRUE(absl::IsUnavailable(other.Run()));
  EXPECT_EQ(other.tries, 1);
}

TEST(Retry, AnErrorIsReturnedAtOnceWhereItsDelayEndsPastTheDeadline) {
  Script script({Refused(grpc::StatusCode::UNAVAILABLE, "DRAINING", absl::Seconds(5))});
  EXPECT_EQ(script.Run(Repeat::kSafe, absl::Seconds(12)).message(), "refused");
  EXPECT_EQ(script.tries, 3);
  EXPECT_THAT(script.clock.sleeps(), ElementsAre(absl::Seconds(5), absl::Seconds(5)));
}

TEST(Retry, AStopEndsTheWait) {
  std::stop_source source;
  CallOptions options{.stop = source.get_token()};
  options.on_retry = [&](const RetryNotice& notice) {
    EXPECT_EQ(notice.attempt, 1);
    EXPECT_EQ(notice.delay, absl::Milliseconds(100));
    EXPECT_EQ(notice.why.message(), "lost");
    source.request_stop();
  };
  Script script({Lost()});
  EXPECT_TRUE(absl::IsCancelled(script.Run(Repeat::kSafe, absl::Seconds(60), options)));
  EXPECT_EQ(script.tries, 1);
}

TEST(Retry, JitterAddsAtMostItsPart) {
  for (int i = 0; i < 100; ++i) {
    Script script(
        {Refused(grpc::StatusCode::UNAVAILABLE, "STARTING", absl::Seconds(4)), Outcome{}});
    EXPECT_TRUE(script.Run(Repeat::kSafe, absl::Seconds(60), {}, {.jitter = 0.25}).ok());
    EXPECT_GE(script.clock.sleeps()[0], absl::Seconds(4));
    EXPECT_LE(script.clock.sleeps()[0], absl::Seconds(5));
  }
}

TEST(Retry, APolicyCanTurnItOff) {
  Script script({Lost(), Outcome{}});
  EXPECT_FALSE(script.Run(Repeat::kSafe, absl::Seconds(60), {}, {.enabled = false}).ok());
  EXPECT_EQ(script.tries, 1);
}

TEST(Retry, TheRealClockWakesUpForAStop) {
  std::stop_source source;
  source.request_stop();
  EXPECT_FALSE(Clock::Real()->Sleep(absl::Hours(1), source.get_token()));
  EXPECT_TRUE(Clock::Real()->Sleep(absl::Milliseconds(1), {}));
}

}  // namespace
}  // namespace docmem::client::internal
