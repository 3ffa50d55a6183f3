#include "adapter_store/files/s3_xml.h"

#include <string>

#include "adapter_store/testing/store_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(S3XmlTest, KeysOfAListing) {
  const auto listing = ReadListing(
      "<?xml version='1.0' encoding='UTF-8'?>"
      "<ListBucketResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'><Name>b</Name>"
      "<IsTruncated>true</IsTruncated><Contents><Key>p/a</Key><Size>3</Size></Contents>"
      "<Contents><Key>p/b&amp;c</Key></Contents></ListBucketResult>");
  ASSERT_OK(listing);
  EXPECT_THAT(listing->keys, ElementsAre("p/a", "p/b&c"));
  EXPECT_TRUE(listing->more);
  EXPECT_FALSE(ReadListing("<ListBucketResult/>")->more);
}

TEST(S3XmlTest, Uploads) {
  const auto uploads = ReadUploads(
      "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>"
      "<Upload><Key>k</Key><UploadId>u</UploadId></Upload></ListMultipartUploadsResult>");
  ASSERT_OK(uploads);
  EXPECT_THAT(uploads->uploads, ElementsAre(Pair("k", "u")));
  EXPECT_EQ(*ReadUploadId("<InitiateMultipartUploadResult><UploadId>7</UploadId>"
                          "</InitiateMultipartUploadResult>"),
            "7");
}

TEST(S3XmlTest, ACompletionMayFailWithTheCodeOfSuccess) {
  EXPECT_OK(ReadCompletion("<CompleteMultipartUploadResult/>"));
  const absl::Status failed =
      ReadCompletion("<Error><Code>InternalError</Code><Message>try again</Message></Error>");
  EXPECT_TRUE(absl::IsUnavailable(failed));
  EXPECT_THAT(failed.message(), HasSubstr("InternalError: try again"));
}

TEST(S3XmlTest, WhatIsNotXmlIsShownAndRefused) {
  for (const char* text : {"", "<html>a proxy</html>", "not < xml", "<ListBucketResult>",
                           "<InitiateMultipartUploadResult/>"}) {
    EXPECT_TRUE(absl::IsUnavailable(ReadListing(text).status())) << text;
    EXPECT_TRUE(absl::IsUnavailable(ReadUploads(text).status())) << text;
    EXPECT_TRUE(absl::IsUnavailable(ReadUploadId(text).status())) << text;
    EXPECT_TRUE(absl::IsUnavailable(ReadCompletion(text))) << text;
  }
  EXPECT_THAT(ReadListing("<html>a proxy</html>").status().message(), HasSubstr("a proxy"));
  EXPECT_EQ(ReadErrorText(std::string(1000, 'x')).size(), 200u);
  EXPECT_EQ(ReadErrorText("\xff\x00"), "?");
}

TEST(S3XmlTest, PartsCountFromOneAndTheirTagsAreEscaped) {
  EXPECT_EQ(CompletionXml({"\"a\"", "<b>"}),
            "<?xml version=\"1.0\"?><CompleteMultipartUpload>"
            "<Part><PartNumber>1</PartNumber><ETag>\"a\"</ETag></Part>"
            "<Part><PartNumber>2</PartNumber><ETag>&lt;b&gt;</ETag></Part>"
            "</CompleteMultipartUpload>");
}

TEST(S3XmlTest, EntitiesThatMultiplyAreNotUnfolded) {
  std::string bomb = "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\">";
  for (char c = 'b'; c < 'z'; ++c) {
    const std::string before = {'&', static_cast<char>(c - 1), ';'};
    bomb += std::string("<!ENTITY ") + c + " \"" + before + before + before + before + "\">";
  }
  bomb += "]><ListBucketResult><Contents><Key>&y;</Key></Contents></ListBucketResult>";
  const auto listing = ReadListing(bomb);
  ASSERT_OK(listing);
  EXPECT_THAT(listing->keys, ElementsAre("&y;"));
}

}  // namespace
}  // namespace docmem::store
