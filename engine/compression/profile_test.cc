#include "engine/compression/profile.h"

#include <gtest/gtest.h>

namespace docmem::engine {
namespace {

TEST(Profile, NamesGoBothWays) {
  for (const Profile profile : {Profile::kCompactor, Profile::kKnorm, Profile::kRandom,
                                Profile::kStreaming, Profile::kCompactorVllm}) {
    EXPECT_EQ(ProfileFromName(ProfileName(profile)), profile);
  }
  EXPECT_EQ(ProfileName(Profile::kCompactorVllm), "compactor-vllm");
  EXPECT_EQ(ProfileFromName("Compactor"), std::nullopt);
  EXPECT_EQ(ProfileFromName(""), std::nullopt);
}

TEST(Profile, TheBlendIsTheRatioOrTheAuthorsConstantUnlessItIsSet) {
  EXPECT_EQ(BlendOf({.ratio_ppm = 700'000}), 0.7);
  EXPECT_EQ(BlendOf({.ratio_ppm = 700'000, .profile = Profile::kCompactorVllm}), 0.5);
  for (const Profile profile : {Profile::kCompactor, Profile::kCompactorVllm}) {
    EXPECT_EQ(BlendOf({.ratio_ppm = 700'000, .profile = profile, .blend = 0.25}), 0.25);
  }
  EXPECT_EQ(BlendOf({.ratio_ppm = 700'000, .profile = Profile::kKnorm}), 0.0);
}

TEST(KeptTokens, IsExactIntegerArithmetic) {
  EXPECT_EQ(KeptTokens(1000, 0, 0), 1000);
  EXPECT_EQ(KeptTokens(1000, 17, 1'000'000), 17);
  EXPECT_EQ(KeptTokens(1000, 17, 900'000), 17 + 98);
  EXPECT_EQ(KeptTokens(1000, 0, 900'000), 100);
  EXPECT_EQ(KeptTokens(10, 0, 700'000), 3);  // 10 · (1 − 0.7) is below 3 in doubles
  EXPECT_EQ(KeptTokens(1'000'000'000, 0, 999'999), 1000);
  EXPECT_EQ(KeptTokens(1000, 999, 999'999), 999);
  EXPECT_EQ(KeptTokens(1, 1, 500'000), 1);
}

TEST(KeptTokens, LosesAtMostTheFractionOfOneTokenToRounding) {
  for (int64_t document = 0; document < 50; ++document) {
    for (uint32_t ppm = 0; ppm <= kRatioOnePpm; ppm += 12'345) {
      const int64_t kept = KeptTokens(document + 5, 5, ppm) - 5;
      const int64_t exact_ppm = document * (kRatioOnePpm - ppm);
      EXPECT_LE(kept * kRatioOnePpm, exact_ppm);
      EXPECT_GT((kept + 1) * kRatioOnePpm, exact_ppm);
    }
  }
}

}  // namespace
}  // namespace docmem::engine
