// What an object store may do to us, played by a server on loopback.

#include "adapter_store/files/s3_object_store.h"

#include <deque>
#include <string>

#include "absl/strings/str_cat.h"
#include "adapter_store/files/file_in_memory.h"
#include "adapter_store/testing/scripted_http_server.h"
#include "adapter_store/testing/store_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::HttpAnswer;
using store_test::ScriptedHttpServer;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

using Answers = std::deque<HttpAnswer>;

constexpr size_t kPart = 8;

std::unique_ptr<ObjectStore> StoreAt(const std::string& endpoint) {
  return S3ObjectStore({.endpoint = endpoint,
                        .region = "us-east-1",
                        .bucket = "bucket",
                        .prefix = "in/",
                        .access_key = "id",
                        .secret_key = "very-secret",
                        .session_token = "",
                        .ca_file = ""},
                       {.tries = 4,
                        .first_delay = absl::Milliseconds(1),
                        .connect = absl::Seconds(2),
                        .stall = absl::Seconds(1)},
                       kPart);
}

absl::StatusOr<std::string> Get(const ScriptedHttpServer& server, size_t bytes) {
  std::string text(bytes, '\0');
  const absl::Status status =
      StoreAt(server.endpoint())->Get("key", std::as_writable_bytes(std::span(text)));
  if (!status.ok()) return status;
  return text;
}

absl::Status Put(const ScriptedHttpServer& server, const std::string& text) {
  return StoreAt(server.endpoint())->Put("key", FileInMemory(text));
}

TEST(S3ObjectStoreTest, RequestsAreSignedAndCarryTheirDigest) {
  const ScriptedHttpServer server(Answers{{.code = 200}});
  ASSERT_OK(Put(server, "text"));
  const auto requests = server.requests();
  ASSERT_THAT(requests, SizeIs(1));
  EXPECT_EQ(requests[0].method, "PUT");
  EXPECT_EQ(requests[0].target, "/bucket/in/key");
  EXPECT_EQ(requests[0].body, "text");
  EXPECT_THAT(requests[0].head, HasSubstr("authorization: aws4-hmac-sha256 credential=id/"));
  EXPECT_THAT(requests[0].head, HasSubstr("x-amz-content-sha256: 982d9e3eb996f559e633f4d194def376"
                                          "1d909f5a3b647d1a851fead67c32c9d1"));
  EXPECT_THAT(requests[0].head, Not(HasSubstr("very-secret")));
  EXPECT_THAT(requests[0].head, Not(HasSubstr("basic")));
}

TEST(S3ObjectStoreTest, WhatMayPassIsTriedAgain) {
  for (const int code : {408, 429, 500, 503}) {
    const ScriptedHttpServer server({{.code = code}, {.code = code}, {.code = 200}});
    EXPECT_OK(Put(server, "text"));
    EXPECT_THAT(server.requests(), SizeIs(3));
  }
  const ScriptedHttpServer breaks({{.silent = true}, {.code = 200}});
  EXPECT_OK(Put(breaks, "text"));
}

TEST(S3ObjectStoreTest, WhatStaysBrokenIsUnavailable) {
  const ScriptedHttpServer server(
      {{.code = 503, .body = "<Error><Code>SlowDown</Code><Message>later</Message></Error>"}});
  const absl::Status status = Put(server, "text");
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(status.message(), HasSubstr("PUT 'key' got 503 SlowDown: later"));
  EXPECT_THAT(server.requests(), SizeIs(4));
}

TEST(S3ObjectStoreTest, RefusalsAreNotTriedAgain) {
  const ScriptedHttpServer denied(
      {{.code = 403, .body = "<Error><Code>AccessDenied</Code><Message>no</Message></Error>"}});
  const absl::Status status = Put(denied, "text");
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_THAT(status.message(), Not(HasSubstr("very-secret")));
  EXPECT_THAT(denied.requests(), SizeIs(1));
  const ScriptedHttpServer moved(
      {{.code = 301, .body = "", .headers = "Location: http://127.0.0.1:1/\r\n"}});
  EXPECT_TRUE(absl::IsFailedPrecondition(Put(moved, "text")));
  EXPECT_THAT(moved.requests(), SizeIs(1));
  const ScriptedHttpServer full(Answers{{.code = 507}});
  EXPECT_TRUE(absl::IsResourceExhausted(Put(full, "text")));
  const ScriptedHttpServer quota({{.code = 403,
                                   .body = "<Error><Code>QuotaExceeded</Code>"
                                           "<Message>full</Message></Error>"}});
  EXPECT_TRUE(absl::IsResourceExhausted(Put(quota, "text")));
}

TEST(S3ObjectStoreTest, AMissingBucketIsNotAMissingObject) {
  const ScriptedHttpServer server(
      {{.code = 404, .body = "<Error><Code>NoSuchBucket</Code><Message>b</Message></Error>"}});
  EXPECT_TRUE(absl::IsFailedPrecondition(Get(server, 4).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(Put(server, "text")));
  const ScriptedHttpServer proxy({{.code = 404, .body = "<html>not here</html>"}});
  EXPECT_TRUE(absl::IsUnavailable(Get(proxy, 4).status()));
  const ScriptedHttpServer absent(
      {{.code = 404, .body = "<Error><Code>NoSuchKey</Code><Message>k</Message></Error>"}});
  EXPECT_TRUE(absl::IsNotFound(Get(absent, 4).status()));
}

TEST(S3ObjectStoreTest, ACutAnswerGoesOnWhereItWasCut) {
  const ScriptedHttpServer server(
      {{.code = 200, .body = "0123456789", .sent = 4},
       {.code = 206, .body = "456789", .headers = "Content-Range: bytes 4-9/10\r\n"}});
  const auto text = Get(server, 10);
  ASSERT_OK(text);
  EXPECT_EQ(*text, "0123456789");
  EXPECT_THAT(server.requests()[1].head, HasSubstr("range: bytes=4-\r\n"));
}

TEST(S3ObjectStoreTest, AServerThatIgnoresTheRangeIsReadFromTheFront) {
  const ScriptedHttpServer server(
      {{.code = 200, .body = "0123456789", .sent = 4}, {.code = 200, .body = "0123456789"}});
  EXPECT_EQ(*Get(server, 10), "0123456789");
}

TEST(S3ObjectStoreTest, AnotherPartThanAskedForIsRefused) {
  const ScriptedHttpServer server(
      {{.code = 200, .body = "0123456789", .sent = 4},
       {.code = 206, .body = "012345", .headers = "Content-Range: bytes 0-5/10\r\n"}});
  EXPECT_TRUE(absl::IsUnavailable(Get(server, 10).status()));
}

TEST(S3ObjectStoreTest, ABodyOfAnotherLengthIsDataLoss) {
  const ScriptedHttpServer server({{.code = 200, .body = "0123456789"}});
  EXPECT_TRUE(absl::IsDataLoss(Get(server, 9).status()));
  EXPECT_TRUE(absl::IsDataLoss(Get(server, 11).status()));
  EXPECT_TRUE(absl::IsDataLoss(Get(server, 0).status()));
}

TEST(S3ObjectStoreTest, NobodyThereIsUnavailable) {
  std::string text(4, '\0');
  const absl::Status status =
      StoreAt("http://127.0.0.1:9")->Get("key", std::as_writable_bytes(std::span(text)));
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(status.message(), HasSubstr("GET 'key' failed"));
}

const HttpAnswer kBegun = {.code = 200,
                           .body =
                               "<InitiateMultipartUploadResult><UploadId>u/1</UploadId>"
                               "</InitiateMultipartUploadResult>"};
const HttpAnswer kPartTaken = {.code = 200, .body = "", .headers = "ETag: \"tag\"\r\n"};

TEST(S3ObjectStoreTest, ALargeFileGoesUpInParts) {
  const ScriptedHttpServer server({kBegun,
                                   kPartTaken,
                                   {.code = 500},
                                   kPartTaken,
                                   {.code = 200, .body = "<CompleteMultipartUploadResult/>"}});
  ASSERT_OK(Put(server, "01234567rest"));
  const auto requests = server.requests();
  ASSERT_THAT(requests, SizeIs(5));
  EXPECT_EQ(requests[0].target, "/bucket/in/key?uploads=");
  EXPECT_EQ(requests[1].target, "/bucket/in/key?partNumber=1&uploadId=u%2F1");
  EXPECT_EQ(requests[1].body, "01234567");
  EXPECT_EQ(requests[3].target, requests[2].target);
  EXPECT_EQ(requests[3].body, "rest");
  EXPECT_THAT(requests[4].body, HasSubstr("<PartNumber>2</PartNumber><ETag>\"tag\"</ETag>"));
}

TEST(S3ObjectStoreTest, AnUploadThatFailsIsTakenBack) {
  const ScriptedHttpServer server({kBegun, kPartTaken, {.code = 403}, {.code = 204}});
  EXPECT_TRUE(absl::IsPermissionDenied(Put(server, "01234567rest")));
  EXPECT_EQ(server.requests().back().method, "DELETE");
  EXPECT_EQ(server.requests().back().target, "/bucket/in/key?uploadId=u%2F1");
}

TEST(S3ObjectStoreTest, AnUploadThatMayBeCompleteIsNotTakenBack) {
  for (const HttpAnswer& last :
       {HttpAnswer{.code = 403}, HttpAnswer{.silent = true},
        HttpAnswer{.code = 200,
                   .body = "<Error><Code>InternalError</Code><Message>m</Message></Error>"}}) {
    const ScriptedHttpServer server({kBegun, kPartTaken, kPartTaken, last});
    EXPECT_FALSE(Put(server, "01234567rest").ok());
    EXPECT_EQ(server.requests().back().method, "POST");
  }
}

TEST(S3ObjectStoreTest, ALostAnswerToTheCompletionIsLookedUp) {
  const HttpAnswer gone = {.code = 404,
                           .body = "<Error><Code>NoSuchUpload</Code><Message>m</Message></Error>"};
  const ScriptedHttpServer stored({kBegun,
                                   kPartTaken,
                                   kPartTaken,
                                   {.silent = true},
                                   gone,
                                   {.code = 200, .body = "0123456789ab"}});
  EXPECT_OK(Put(stored, "01234567rest"));
  EXPECT_EQ(stored.requests().back().method, "HEAD");
  const ScriptedHttpServer lost({kBegun, kPartTaken, kPartTaken, gone, {.code = 404}});
  EXPECT_TRUE(absl::IsUnavailable(Put(lost, "01234567rest")));
}

TEST(S3ObjectStoreTest, ListedKeysAreDeletedPageByPage) {
  const ScriptedHttpServer server(
      {{.code = 200,
        .body = "<ListBucketResult><IsTruncated>true</IsTruncated>"
                "<Contents><Key>in/a/1</Key></Contents></ListBucketResult>"},
       {.code = 204},
       {.code = 200,
        .body = "<ListBucketResult><Contents><Key>in/a/2</Key></Contents></ListBucketResult>"},
       {.code = 204},
       {.code = 200,
        .body = "<ListMultipartUploadsResult><Upload><Key>in/a/3</Key><UploadId>u</UploadId>"
                "</Upload></ListMultipartUploadsResult>"},
       {.code = 204}});
  ASSERT_OK(StoreAt(server.endpoint())->DeleteAll("a/"));
  const auto requests = server.requests();
  ASSERT_THAT(requests, SizeIs(6));
  EXPECT_EQ(requests[0].target, "/bucket?list-type=2&max-keys=1000&prefix=in%2Fa%2F");
  EXPECT_EQ(requests[1].target, "/bucket/in/a/1");
  EXPECT_THAT(requests[2].target, HasSubstr("&start-after=in%2Fa%2F1"));
  EXPECT_EQ(requests[3].target, "/bucket/in/a/2");
  EXPECT_EQ(requests[5].target, "/bucket/in/a/3?uploadId=u");
}

TEST(S3ObjectStoreTest, AListingOfForeignKeysDeletesNothing) {
  const ScriptedHttpServer server(
      {{.code = 200,
        .body = "<ListBucketResult><Contents><Key>other/a/1</Key></Contents></ListBucketResult>"}});
  EXPECT_TRUE(absl::IsUnavailable(StoreAt(server.endpoint())->DeleteAll("a/")));
  EXPECT_THAT(server.requests(), SizeIs(1));
}

TEST(S3ObjectStoreTest, OddListingsDeleteNothing) {
  for (const char* listed :
       {"<Contents><Key>in/a/../../../other</Key></Contents>",
        "<Contents><Key>in/a/1?x</Key></Contents>", "<Contents><Key>in/a/1 2</Key></Contents>",
        "<IsTruncated>true</IsTruncated>"}) {
    const ScriptedHttpServer server(Answers{
        {.code = 200, .body = absl::StrCat("<ListBucketResult>", listed, "</ListBucketResult>")}});
    EXPECT_TRUE(absl::IsUnavailable(StoreAt(server.endpoint())->DeleteAll("a/"))) << listed;
    EXPECT_THAT(server.requests(), SizeIs(1)) << listed;
  }
  // The same page again and again.
  const ScriptedHttpServer server(
      {{.code = 200,
        .body = "<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>in/a/1</Key>"
                "</Contents></ListBucketResult>"},
       {.code = 204},
       {.code = 200,
        .body = "<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>in/a/1</Key>"
                "</Contents></ListBucketResult>"}});
  EXPECT_TRUE(absl::IsUnavailable(StoreAt(server.endpoint())->DeleteAll("a/")));
  EXPECT_THAT(server.requests(), SizeIs(3));
}

TEST(S3ObjectStoreTest, AfterTriesThatDidNotHelpOthersFailAtOnce) {
  const ScriptedHttpServer server(Answers{{.code = 503}});
  const std::unique_ptr<ObjectStore> objects = StoreAt(server.endpoint());
  EXPECT_TRUE(absl::IsUnavailable(objects->Put("key", FileInMemory("text"))));
  EXPECT_THAT(server.requests(), SizeIs(4));
  EXPECT_TRUE(absl::IsUnavailable(objects->Put("key", FileInMemory("text"))));
  EXPECT_THAT(server.requests(), SizeIs(4));
}

TEST(S3ObjectStoreTest, AServerThatStaysSilentIsGivenUp) {
  const ScriptedHttpServer server(Answers{{.waits = true}});
  const absl::Time began = absl::Now();
  EXPECT_TRUE(absl::IsUnavailable(Put(server, "text")));
  EXPECT_LT(absl::Now() - began, absl::Seconds(30));
}

TEST(S3ObjectStoreTest, AProxysPageIsNotAnEmptyListing) {
  const ScriptedHttpServer server({{.code = 200, .body = "<html>Sign in</html>"}});
  EXPECT_TRUE(absl::IsUnavailable(StoreAt(server.endpoint())->DeleteAll("a/")));
}

}  // namespace
}  // namespace docmem::store
