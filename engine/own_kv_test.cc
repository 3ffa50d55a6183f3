#include "engine/own_kv.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace docmem::engine {
namespace {

ModelConfig Config() {
  ModelConfig config;
  config.layers = 2;
  config.kv_heads = 3;
  config.head_dim = 4;
  return config;
}

TEST(OwnKvTest, RowsStayWhereTheyAreWhileItGrows) {
  OwnKv own(Config(), at::kFloat, /*most_rows=*/278);
  at::Tensor all_keys = at::empty({0, 3, 4});
  for (const int64_t rows : {5, 1, 1, 70, 1, 200}) {
    const at::Tensor keys = at::randn({rows, 3, 4});
    own.Reserve(own.length() + rows);
    own.Write(0, keys, keys * 2);
    own.Write(1, -keys, keys * 3);
    own.Advance(rows);
    all_keys = at::cat({all_keys, keys});
    const at::Tensor expected = all_keys.transpose(0, 1);
    EXPECT_TRUE(own.Rows(0, own.length()).keys.equal(expected));
    EXPECT_TRUE(own.Rows(0, own.length()).values.equal(expected * 2));
    EXPECT_TRUE(own.Rows(1, own.length()).keys.equal(-expected));
    EXPECT_TRUE(own.Rows(1, own.length()).values.equal(expected * 3));
  }
}

TEST(OwnKvTest, GrowthIsAmortisedAndEndsAtWhatIsAnnounced) {
  OwnKv own(Config(), at::kFloat, /*most_rows=*/10'000);
  int growths = 0;
  uint64_t bytes = own.bytes();
  EXPECT_EQ(bytes, 0U);
  for (int64_t rows = 1; rows <= 10'000; ++rows) {
    own.Reserve(rows);
    growths += own.bytes() != bytes;
    bytes = own.bytes();
  }
  EXPECT_LT(growths, 16);
  EXPECT_EQ(OwnKv::MostCapacity(10'000), 10'048);
  EXPECT_EQ(bytes, 2U * 2 * 3 * 4 * 4 * 10'048);
}

}  // namespace
}  // namespace docmem::engine
