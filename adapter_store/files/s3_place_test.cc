#include "adapter_store/files/s3_place.h"

#include <map>
#include <string>

#include "adapter_store/testing/store_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

const Variables kKeys = {{"AWS_ACCESS_KEY_ID", "id"}, {"AWS_SECRET_ACCESS_KEY", "secret"}};

absl::StatusOr<S3Place> Parse(const std::string& where, Variables variables = {}) {
  variables.insert(kKeys.begin(), kKeys.end());
  return ParseS3Place(where, [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(S3PlaceTest, BucketAloneIsAmazonsInItsFirstRegion) {
  const auto place = Parse("s3://bucket");
  ASSERT_OK(place);
  EXPECT_EQ(place->bucket, "bucket");
  EXPECT_EQ(place->prefix, "");
  EXPECT_EQ(place->region, "us-east-1");
  EXPECT_EQ(place->endpoint, "https://s3.us-east-1.amazonaws.com");
  EXPECT_EQ(place->access_key, "id");
  EXPECT_EQ(place->secret_key, "secret");
}

TEST(S3PlaceTest, PrefixesEndWithASlash) {
  EXPECT_EQ(Parse("s3://bucket/a/b.c")->prefix, "a/b.c/");
  EXPECT_EQ(Parse("s3://bucket/a/")->prefix, "a/");
  EXPECT_EQ(Parse("s3://bucket/")->prefix, "");
}

TEST(S3PlaceTest, TheNearerVariableWins) {
  const auto place = Parse("s3://bucket", {{"AWS_ENDPOINT_URL", "https://one"},
                                           {"AWS_ENDPOINT_URL_S3", "http://two:8080/"},
                                           {"AWS_DEFAULT_REGION", "far"},
                                           {"AWS_REGION", "near"},
                                           {"AWS_SESSION_TOKEN", "token"},
                                           {"AWS_CA_BUNDLE", "/ca.pem"}});
  ASSERT_OK(place);
  EXPECT_EQ(place->endpoint, "http://two:8080");
  EXPECT_EQ(place->region, "near");
  EXPECT_EQ(place->session_token, "token");
  EXPECT_EQ(place->ca_file, "/ca.pem");
}

TEST(S3PlaceTest, OddNamesAreRefused) {
  for (const char* where :
       {"s3://", "s3:///prefix", "s3://bucket//a", "s3://bucket/a b", "s3://bucket/../other",
        "s3://bucket/a?b", "s3://bucket/%2e", "s4://b"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Parse(where).status())) << where;
  }
}

TEST(S3PlaceTest, OddVariablesAreRefusedByName) {
  EXPECT_THAT(Parse("s3://b", {{"AWS_ENDPOINT_URL", "host:80"}}).status().message(),
              HasSubstr("AWS_ENDPOINT_URL"));
  EXPECT_THAT(Parse("s3://b", {{"AWS_ENDPOINT_URL", "http://h/path"}}).status().message(),
              HasSubstr("AWS_ENDPOINT_URL"));
  EXPECT_THAT(Parse("s3://b", {{"AWS_REGION", "a b"}}).status().message(), HasSubstr("AWS_REGION"));
  EXPECT_THAT(Parse("s3://b", {{"AWS_ACCESS_KEY_ID", "a\nb: c"}}).status().message(),
              HasSubstr("line break"));
}

TEST(S3PlaceTest, MissingKeysAreNamedAndNeverShown) {
  const auto none = ParseS3Place("s3://b", [](const char*) { return nullptr; });
  EXPECT_THAT(none.status().message(), HasSubstr("AWS_SECRET_ACCESS_KEY"));
  const auto half = Parse("s3://b", {{"AWS_SECRET_ACCESS_KEY", "sec ret"}});
  EXPECT_THAT(half.status().message(), ::testing::Not(HasSubstr("sec ret")));
}

}  // namespace
}  // namespace docmem::store
