#include "training/prefix_cache.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "engine/model/testing.h"
#include "engine/testing.h"

namespace docmem::training {
namespace {

std::shared_ptr<const PrefixKv> Compute(PrefixCache* cache, const std::vector<int32_t>& ids) {
  std::shared_ptr<const PrefixKv> prefix;
  while ((prefix = cache->Step(ids)) == nullptr) {
  }
  return prefix;
}

class PrefixCacheTest : public ::testing::Test {
 protected:
  std::shared_ptr<const engine::Engine> engine_ = engine::testing::TinyEngine("tiny-qwen3");
  const std::vector<int32_t> ids_ = {5, 9, 17, 33, 12};
};

TEST_F(PrefixCacheTest, RowsAreThoseThatIngestionWrites) {
  PrefixCache prefixes(engine_->transformer(), 1 << 20);
  const auto prefix = Compute(&prefixes, ids_);
  const auto cache =
      engine::testing::Ingest(*engine_, {.ids = ids_, .head_tokens = 2}, {.ratio_ppm = 0});
  for (int64_t layer = 0; layer < cache->layers(); ++layer) {
    EXPECT_TRUE(at::equal(prefix->keys[layer], cache->Layer(layer).keys));
    EXPECT_TRUE(at::equal(prefix->values[layer], cache->Layer(layer).values));
  }
  EXPECT_FALSE(prefix->keys.is_inference());
}

TEST_F(PrefixCacheTest, RemembersWhatFitsItsBudget) {
  PrefixCache prefixes(engine_->transformer(), 0);
  EXPECT_EQ(prefixes.Find(ids_), nullptr);
  const auto prefix = Compute(&prefixes, ids_);
  EXPECT_EQ(prefixes.Find(ids_), nullptr);
  const uint64_t bytes = prefix->keys.nbytes() + prefix->values.nbytes();

  PrefixCache one(engine_->transformer(), bytes + 1);
  const auto first = Compute(&one, ids_);
  EXPECT_EQ(one.Find(ids_), first);
  Compute(&one, {4, 5, 6, 7, 8});
  EXPECT_EQ(one.Find({4, 5, 6, 7, 8}), nullptr);
  EXPECT_EQ(one.Find(ids_), first);
  EXPECT_EQ(one.bytes(), bytes);
}

}  // namespace
}  // namespace docmem::training
