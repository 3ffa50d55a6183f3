#include "server/query/quotas.h"

#include <gtest/gtest.h>

#include <string>

#include "server/errors/error.h"

namespace docmem::server {
namespace {

void Enter(Quotas& quotas, const std::string& who, int times) {
  for (int i = 0; i < times; ++i) quotas.Enter(who);
}

TEST(Quotas, WithoutALimitNothingIsRefused) {
  Quotas quotas;
  Enter(quotas, "a", 100);
  EXPECT_TRUE(quotas.Check("a", {}).ok());
}

TEST(Quotas, ARefusalTellsLimitAndUse) {
  Quotas quotas;
  const QuestionLimits limits{.max_in_flight = 2};
  EXPECT_TRUE(quotas.Check("token 'a'", limits).ok());
  Enter(quotas, "token 'a'", 2);
  const absl::Status refused = quotas.Check("token 'a'", limits);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(store::ReasonOf(refused), "QUOTA_MAX_IN_FLIGHT");
  EXPECT_EQ(store::DetailsOf(refused).at("limit"), "2");
  EXPECT_EQ(store::DetailsOf(refused).at("used"), "2");
  EXPECT_NE(refused.message().find("token 'a' has 2 of at most 2"), absl::string_view::npos);
  EXPECT_TRUE(quotas.Check("token 'b'", limits).ok());
}

TEST(Quotas, WhatWasFullOpensAgainAtNineTenths) {
  Quotas quotas;
  const QuestionLimits limits{.max_in_flight = 20};
  Enter(quotas, "a", 20);
  EXPECT_FALSE(quotas.Check("a", limits).ok());
  quotas.Leave("a", true);
  EXPECT_FALSE(quotas.Check("a", limits).ok()) << "19 of 20";
  quotas.Leave("a", true);
  EXPECT_TRUE(quotas.Check("a", limits).ok()) << "18 of 20";
  quotas.Enter("a");
  EXPECT_TRUE(quotas.Check("a", limits).ok()) << "it was never full again";
}

TEST(Quotas, ALimitOfOneOpensWhenNoneIsLeft) {
  Quotas quotas;
  Enter(quotas, "a", 1);
  EXPECT_FALSE(quotas.Check("a", {.max_in_flight = 1}).ok());
  quotas.Leave("a", true);
  EXPECT_TRUE(quotas.Check("a", {.max_in_flight = 1}).ok());
}

TEST(Quotas, WhatRunsDoesNotWait) {
  Quotas quotas;
  const QuestionLimits limits{.max_queued = 1};
  Enter(quotas, "a", 1);
  EXPECT_EQ(store::ReasonOf(quotas.Check("a", limits)), "QUOTA_MAX_QUEUED");
  quotas.Run("a");
  EXPECT_TRUE(quotas.Check("a", limits).ok());
  quotas.Enter("a");
  quotas.Leave("a", false);
  EXPECT_FALSE(quotas.Check("a", limits).ok()) << "the one that waits is still there";
}

TEST(Quotas, ALowerLimitCountsAtOnce) {
  Quotas quotas;
  Enter(quotas, "a", 5);
  EXPECT_TRUE(quotas.Check("a", {.max_in_flight = 10}).ok());
  EXPECT_EQ(store::DetailsOf(quotas.Check("a", {.max_in_flight = 3})).at("used"), "5");
}

}  // namespace
}  // namespace docmem::server
