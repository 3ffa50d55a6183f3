#include "server/services/validate.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "server/errors/error.h"

namespace docmem::server {
namespace {

std::string FieldOf(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return store::DetailsOf(status)["field"];
}

TEST(CheckId, HostileNamesAreRefused) {
  for (const std::string& bad :
       {std::string(), std::string("."), std::string(".."), std::string("../x"),
        std::string("/etc"), std::string("a/../../b"), std::string("a/"), std::string("a b"),
        std::string("a\0b", 3), std::string("\u0430"), std::string(129, 'a'),
        std::string(4096, 'a'), std::string("-\n")}) {
    EXPECT_EQ(FieldOf(CheckId("document", bad)), "document");
  }
  for (const std::string& good :
       {std::string("a"), std::string("A.b_c-9"), std::string("-"), std::string(128, 'z')}) {
    EXPECT_TRUE(CheckId("document", good).ok()) << good;
  }
}

TEST(CheckCollectionId, OnlyCollectionsOfTheCallerAreLetThrough) {
  const Principal lawyer{.collections = AllowedCollections({"law"})};
  EXPECT_TRUE(CheckCollectionId(lawyer, "name", "law").ok());
  for (const char* other : {"default", "la", "laws", "LAW"}) {
    const absl::Status refused = CheckCollectionId(lawyer, "name", other);
    EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied) << other;
    EXPECT_EQ(store::ReasonOf(refused), "NOT_PERMITTED") << other;
  }
  for (const char* bad : {"", "../law", ".law", "la w"}) {
    EXPECT_EQ(FieldOf(CheckCollectionId(lawyer, "name", bad)), "name") << bad;
  }
  EXPECT_FALSE(CheckCollectionId(Principal(), "name", "law").ok());
}

TEST(CheckPage, SizesHaveADefaultAndALimit) {
  EXPECT_EQ(CheckPage(0, "")->size, 100U);
  EXPECT_EQ(CheckPage(1000, "t")->token, "t");
  EXPECT_EQ(FieldOf(CheckPage(1001, "").status()), "page_size");
}

TEST(CheckLength, TheLimitIsInTheMessageAndTheTextIsNot) {
  const absl::Status status = CheckLength("title", "secret", 5);
  EXPECT_EQ(store::ReasonOf(status), "LIMIT_EXCEEDED");
  EXPECT_NE(status.message().find("at most 5"), absl::string_view::npos);
  EXPECT_EQ(status.message().find("secret"), absl::string_view::npos);
  EXPECT_TRUE(CheckLength("title", "short", 5).ok());
}

TEST(CheckDigest, IsHexadecimalOrEmpty) {
  EXPECT_TRUE(CheckDigest("d", "").ok());
  EXPECT_TRUE(CheckDigest("d", std::string(64, 'a')).ok());
  for (const std::string& digest :
       {std::string(64, 'A'), std::string(63, 'a'), std::string("xyz")}) {
    EXPECT_EQ(CheckDigest("d", digest).code(), absl::StatusCode::kInvalidArgument) << digest;
  }
}

TEST(CheckRatio, IsAPartOfAMillion) {
  EXPECT_TRUE(CheckRatio("ratio_ppm", 1'000'000).ok());
  EXPECT_EQ(FieldOf(CheckRatio("ratio_ppm", 1'000'001)), "ratio_ppm");
}

TEST(CheckLabels, AreBoundInNumberAndSize) {
  store::Labels labels;
  for (int i = 0; i < 32; ++i) labels[absl::StrCat("k", i)] = std::string(256, 'v');
  EXPECT_TRUE(CheckLabels("labels", labels).ok());
  labels["one-more"] = "";
  EXPECT_EQ(FieldOf(CheckLabels("labels", labels)), "labels");
  EXPECT_FALSE(CheckLabels("labels", {{"bad key", ""}}).ok());
  EXPECT_FALSE(CheckLabels("labels", {{"key", std::string(257, 'v')}}).ok());
}

}  // namespace
}  // namespace docmem::server
