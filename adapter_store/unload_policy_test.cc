#include "adapter_store/unload_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace docmem::store {
namespace {

using ::testing::ElementsAre;

UnloadCandidate Candidate(const std::string& id, uint64_t bytes, double seconds) {
  return {{ResidentKind::kCache, id}, bytes, absl::Seconds(seconds)};
}

std::vector<std::string> Order(const UnloadPolicy& policy) {
  std::vector<std::string> ids;
  policy.ForEach([&](const UnloadCandidate& candidate) {
    ids.push_back(candidate.key.id);
    return true;
  });
  return ids;
}

TEST(LruPolicyTest, LeastRecentlyUsedFirstWhateverItCost) {
  const auto policy = MakeLruPolicy();
  policy->Add(Candidate("a", 10, 9.0));
  policy->Add(Candidate("b", 1, 0.1));
  policy->Add(Candidate("a", 10, 9.0));
  EXPECT_THAT(Order(*policy), ElementsAre("b", "a"));
  policy->Unload({ResidentKind::kCache, "b"});
  policy->Remove({ResidentKind::kCache, "unknown"});
  EXPECT_THAT(Order(*policy), ElementsAre("a"));
}

TEST(GreedyDualSizePolicyTest, CheapestPerByteFirst) {
  const auto policy = MakeGreedyDualSizePolicy();
  policy->Add(Candidate("dear and large", 100, 5.0));   // .05
  policy->Add(Candidate("cheap and large", 100, 1.0));  // .01
  policy->Add(Candidate("cheap and small", 10, 1.0));   // .1
  EXPECT_THAT(Order(*policy), ElementsAre("cheap and large", "dear and large", "cheap and small"));
}

TEST(GreedyDualSizePolicyTest, OfEqualWorthTheLeastRecentlyUsedFirst) {
  const auto policy = MakeGreedyDualSizePolicy();
  for (const char* id : {"a", "b", "a", "c"}) policy->Add(Candidate(id, 10, 1.0));
  EXPECT_THAT(Order(*policy), ElementsAre("b", "a", "c"));
}

TEST(GreedyDualSizePolicyTest, WhatIsUnloadedAgesTheRest) {
  const auto policy = MakeGreedyDualSizePolicy();
  policy->Add(Candidate("dear, long ago", 10, 3.0));  // .3
  policy->Add(Candidate("cheap", 10, 2.0));           // .2
  policy->Unload({ResidentKind::kCache, "cheap"});
  policy->Add(Candidate("cheaper, now", 10, 1.5));  // .2 + .15
  EXPECT_THAT(Order(*policy), ElementsAre("dear, long ago", "cheaper, now"));
  policy->Remove({ResidentKind::kCache, "dear, long ago"});  // leased: doesn't age
  policy->Add(Candidate("cheapest", 10, 0.1));               // .2 + .01
  EXPECT_THAT(Order(*policy), ElementsAre("cheapest", "cheaper, now"));
}

}  // namespace
}  // namespace docmem::store
