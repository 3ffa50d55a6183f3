#include "engine/artifacts/cache.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <utility>

#include "engine/artifacts/testing.h"

namespace docmem::engine {
namespace {

using testing::CacheShape;
using testing::RandomCache;

// The section that the constructor blames for these rows.
std::string Blamed(const CacheShape& shape, const std::function<void(KeptRows&)>& damage) {
  const Cache whole = RandomCache(shape);
  KeptRows rows = whole.rows();
  rows.positions = rows.positions.clone();
  rows.offsets = rows.offsets.clone();
  damage(rows);
  try {
    const Cache cache(whole.identity(), shape.layers, shape.kv_heads, std::move(rows));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInternal);
    return error.field();
  }
  return "nothing";
}

TEST(CacheTest, LayersAreViewsOfTheRows) {
  const CacheShape shape;
  const Cache cache = RandomCache(shape);
  const LayerKv layer = cache.Layer(1);
  ASSERT_EQ(layer.keys.sizes(), at::IntArrayRef({3, 5, 8}));
  EXPECT_EQ(layer.keys.storage().data(), cache.rows().keys.storage().data());
  EXPECT_TRUE(layer.keys[2].equal(cache.rows().keys.narrow(0, 25, 5)));
  EXPECT_TRUE(layer.values[0].equal(cache.rows().values.narrow(0, 15, 5)));
}

TEST(CacheTest, TheQuestionStartsBehindTheContext) {
  const Cache cache = RandomCache({});
  EXPECT_EQ(cache.next_position(), 40);
  EXPECT_EQ(cache.kept_tokens(), 5);
}

TEST(CacheTest, WhenNothingOfTheDocumentIsLeftTheQuestionStartsBehindTheHead) {
  EXPECT_EQ(RandomCache({.head_tokens = 5, .kept = {5}}).next_position(), 5);
  EXPECT_EQ(RandomCache({.head_tokens = 0, .kept = {0}}).next_position(), 0);
}

TEST(CacheTest, RaggedHeadsAreReadOneByOne) {
  const Cache cache = RandomCache({.kept = {5, 3, 7, 4, 4, 4}});
  EXPECT_EQ(cache.kept_tokens(), 27 / 6);
  EXPECT_EQ(cache.next_position(), 40);
  EXPECT_TRUE(cache.Ragged(0));
  EXPECT_FALSE(cache.Ragged(1));
  EXPECT_EQ(cache.Layer(1).keys.sizes(), at::IntArrayRef({3, 4, 8}));
  EXPECT_TRUE(cache.Head(0, 1).keys.equal(cache.rows().keys.narrow(0, 5, 3)));
  EXPECT_TRUE(cache.Head(1, 2).values.equal(cache.rows().values.narrow(0, 23, 4)));
  EXPECT_EQ(cache.Head(0, 2).keys.storage().data(), cache.rows().keys.storage().data());
  const std::span<const int64_t> offsets = cache.LayerOffsets(1);
  EXPECT_EQ(std::vector<int64_t>(offsets.begin(), offsets.end()),
            (std::vector<int64_t>{15, 19, 23, 27}));
}

TEST(CacheTest, CountsTheBytesOfAllFourTensors) {
  const Cache cache = RandomCache({.dtype = at::kBFloat16});
  EXPECT_EQ(cache.bytes(), 30U * 8 * 2 * 2 + 30 * 4 + 7 * 8);
}

TEST(CacheTest, RowsThatDontFitTogetherAreRefused) {
  const CacheShape shape;
  EXPECT_EQ(Blamed(shape, [](KeptRows&) {}), "nothing");
  EXPECT_EQ(Blamed(shape, [](KeptRows& r) { r.keys = r.keys.flatten(); }), "keys");
  EXPECT_EQ(Blamed(shape, [](KeptRows& r) { r.values = r.values.narrow(0, 0, 29); }), "values");
  EXPECT_EQ(Blamed(shape, [](KeptRows& r) { r.values = r.values.to(at::kBFloat16); }), "values");
  EXPECT_EQ(Blamed(shape, [](KeptRows& r) { r.positions = r.positions.to(at::kLong); }),
            "positions");
  EXPECT_EQ(Blamed(shape, [](KeptRows& r) { r.positions[3] = 40; }), "positions");
  EXPECT_EQ(Blamed(shape, [](KeptRows& r) { r.positions[3] = r.positions[2]; }), "positions");
  EXPECT_EQ(Blamed(shape, [](KeptRows& r) { r.positions[0] = -1; }), "positions");
  EXPECT_EQ(Blamed(shape, [](KeptRows& r) { r.offsets = r.offsets.narrow(0, 0, 6); }), "offsets");
  EXPECT_EQ(Blamed(shape, [](KeptRows& r) { r.offsets[2] = 16; }), "offsets");
  EXPECT_EQ(Blamed(shape, [](KeptRows& r) { r.offsets[6] = 31; }), "offsets");
}

}  // namespace
}  // namespace docmem::engine
