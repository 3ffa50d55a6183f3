#include "engine/artifacts/cache_identity.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "engine/artifacts/testing.h"
#include "engine/formats/digest.h"

namespace docmem::engine {
namespace {

CacheIdentity Identity() { return testing::SomeIdentity({}); }

TEST(CacheIdentityTest, FieldsRoundTrip) {
  EXPECT_EQ(CacheIdentity::FromFields(Identity().Fields()), Identity());
}

TEST(CacheIdentityTest, EveryFieldChangesTheDigest) {
  std::set<std::string> digests = {Identity().Digest()};
  for (const auto& [name, value] : Identity().Fields()) {
    if (name == "format_version") {
      continue;
    }
    MetadataMap fields = Identity().Fields();
    fields[name] = value == "40" ? "41" : value == "2" ? "3" : value == "900000" ? "1" : "zz";
    EXPECT_TRUE(digests.insert(CacheIdentity::FromFields(fields).Digest()).second) << name;
  }
}

TEST(CacheIdentityTest, AMissingOrMalformedFieldIsNamed) {
  for (const auto& [name, value] : Identity().Fields()) {
    MetadataMap fields = Identity().Fields();
    fields.erase(name);
    try {
      CacheIdentity::FromFields(fields);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kDataLoss);
      EXPECT_EQ(error.field(), name);
    }
  }
  for (const auto& [name, value] : {std::pair{"ratio_ppm", "1000001"},
                                    {"ratio_ppm", "-1"},
                                    {"head_tokens", "41"},
                                    {"context_tokens", "1e3"},
                                    {"context_tokens", "0"}}) {
    MetadataMap fields = Identity().Fields();
    fields[name] = value;
    EXPECT_THROW(CacheIdentity::FromFields(fields), Error) << name;
  }
}

TEST(CacheIdentityTest, AnotherModelIsRefusedByTheFieldThatDiffers) {
  const CacheIdentity identity = Identity();
  EXPECT_NO_THROW(identity.RequireModel(identity.model));
  const std::pair<const char*, std::string ModelIdentity::*> cases[] = {
      {"weights_digest", &ModelIdentity::weights_digest},
      {"config_digest", &ModelIdentity::config_digest},
      {"tokenizer_digest", &ModelIdentity::tokenizer_digest},
      {"dtype", &ModelIdentity::dtype}};
  for (const auto& [name, member] : cases) {
    ModelIdentity running = identity.model;
    running.*member = "other";
    try {
      identity.RequireModel(running);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kFailedPrecondition);
      EXPECT_EQ(error.field(), name);
      EXPECT_NE(std::string(error.what()).find("other"), std::string::npos);
    }
  }
}

TEST(CacheIdentityTest, TheContextDigestIsThatOfTheIdsBytes) {
  const std::vector<int32_t> ids = {1, 256};
  EXPECT_EQ(ContextDigest(ids), Sha256Hex(std::string_view("\1\0\0\0\0\1\0\0", 8)));
  EXPECT_NE(ContextDigest(ids), ContextDigest(std::vector<int32_t>{256, 1}));
}

TEST(CacheIdentityTest, TheProfileNamesWhatChangesTheKeptSet) {
  EXPECT_EQ(ProfileIdentity({.ratio_ppm = 0, .seed = 7}), "none");
  EXPECT_EQ(ProfileIdentity({.ratio_ppm = kRatioOnePpm, .seed = 7}), "none");
  const Compression base{.ratio_ppm = 500'000};
  Compression seed = base;
  seed.seed = 1;
  Compression blend = base;
  blend.blend = 0.25;
  Compression same = base;
  same.blend = 0.5;
  EXPECT_NE(ProfileIdentity(base), ProfileIdentity(seed));
  EXPECT_NE(ProfileIdentity(base), ProfileIdentity(blend));
  EXPECT_EQ(ProfileIdentity(base), ProfileIdentity(same));
  EXPECT_EQ(ProfileIdentity(base),
            "compactor;first=8;last=4;sketch=48;chunk=256;pool=3;blend=0.5;seed=0");
}

TEST(CacheIdentityTest, EveryProfileNamesItsConstantsAndWhetherItHasASeed) {
  const auto text = [](Profile profile) {
    return ProfileIdentity({.ratio_ppm = 900'000, .profile = profile, .seed = 7});
  };
  EXPECT_EQ(text(Profile::kCompactorVllm),
            "compactor-vllm;first=16;last=64;sketch=48;jitter=0.005;leverage=512;attention=128;"
            "blend=0.5;seed=7");
  EXPECT_EQ(text(Profile::kRandom), "random;seed=7");
  EXPECT_EQ(text(Profile::kKnorm), "knorm");
  EXPECT_EQ(text(Profile::kStreaming), "streaming");
}

TEST(CacheIdentityTest, ACacheOfAnAdapterNeedsThatAdapter) {
  const auto accepts = [](const char* writer, const char* scorer, const char* adapter) {
    CacheIdentity identity = Identity();
    identity.writer = writer;
    identity.scorer = scorer;
    try {
      identity.RequireAdapter(adapter);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kFailedPrecondition);
      EXPECT_EQ(error.field(), "adapter");
      EXPECT_NE(std::string(error.what()).find("aa"), std::string::npos);
      return false;
    }
    return true;
  };
  for (const char* scorer : {"base", "none"}) {
    EXPECT_TRUE(accepts("base", scorer, ""));
    EXPECT_TRUE(accepts("base", scorer, "aa"));
    EXPECT_TRUE(accepts("aa", scorer, "aa"));
    EXPECT_FALSE(accepts("aa", scorer, ""));
    EXPECT_FALSE(accepts("aa", scorer, "bb"));
  }
  EXPECT_TRUE(accepts("aa", "aa", "aa"));
  EXPECT_FALSE(accepts("base", "aa", "bb"));
  EXPECT_FALSE(accepts("base", "aa", ""));
}

}  // namespace
}  // namespace docmem::engine
