#include "server/services/build_messages.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/errors/error.h"

namespace docmem::server {
namespace {

class ToCompressionsTest : public testing::Test {
 protected:
  absl::StatusOr<std::vector<engine::Compression>> Read() const {
    return ToCompressions(options_.ratio_ppm(), options_.profiles(), options_.kv_dtype(),
                          {.ratio_ppm = 900'000, .kv_dtype = "bfloat16"});
  }
  std::string RefusedMessage() const {
    const auto refused = Read();
    EXPECT_EQ(store::DetailsOf(refused.status()).at("field"), "kv_dtype") << refused.status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
    return std::string(refused.status().message());
  }

  v1::IngestOptions options_;
};

TEST_F(ToCompressionsTest, NothingNamedIsTheDefaults) {
  const auto compressions = Read();
  ASSERT_TRUE(compressions.ok()) << compressions.status();
  ASSERT_EQ(compressions->size(), 1U);
  EXPECT_EQ(compressions->front().ratio_ppm, 900'000U);
  EXPECT_EQ(compressions->front().profile, engine::Profile::kCompactor);
  EXPECT_FALSE(compressions->front().int8);
}

TEST_F(ToCompressionsTest, EveryRatioComesWithEveryProfileInTheOrderAsked) {
  for (const uint32_t ratio : {500'000U, 0U}) options_.add_ratio_ppm(ratio);
  for (const v1::Profile profile :
       {v1::PROFILE_KNORM, v1::PROFILE_RANDOM, v1::PROFILE_STREAMING, v1::PROFILE_COMPACTOR_VLLM}) {
    options_.add_profiles(profile);
  }
  options_.set_kv_dtype(v1::KV_DTYPE_INT8);
  const auto compressions = Read();
  ASSERT_TRUE(compressions.ok()) << compressions.status();
  ASSERT_EQ(compressions->size(), 8U);
  EXPECT_EQ((*compressions)[0].profile, engine::Profile::kKnorm);
  EXPECT_EQ((*compressions)[3].profile, engine::Profile::kCompactorVllm);
  EXPECT_EQ((*compressions)[3].ratio_ppm, 500'000U);
  EXPECT_EQ((*compressions)[4].ratio_ppm, 0U);
  for (const engine::Compression& compression : *compressions) EXPECT_TRUE(compression.int8);
}

TEST_F(ToCompressionsTest, TheModelsOwnKvDtypeMayBeNamedAndAnotherIsRefusedWithTheChoice) {
  options_.set_kv_dtype(v1::KV_DTYPE_BFLOAT16);
  const auto own = Read();
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_FALSE(own->front().int8);
  options_.set_kv_dtype(v1::KV_DTYPE_FLOAT32);
  const std::string message = RefusedMessage();
  for (const char* part : {"KV_DTYPE_FLOAT32", "KV_DTYPE_BFLOAT16", "KV_DTYPE_INT8"}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
  options_.set_kv_dtype(static_cast<v1::KvDtype>(77));
  EXPECT_NE(RefusedMessage().find("77"), std::string::npos);
}

}  // namespace
}  // namespace docmem::server
