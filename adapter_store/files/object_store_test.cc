// What every place for shared artifacts must keep to: a folder, and the object store that
// tests/with_swift.py starts, where there is one.

#include "adapter_store/files/object_store.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapter_store/files/file_in_memory.h"
#include "adapter_store/files/s3_object_store.h"
#include "adapter_store/testing/store_test_util.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::TemporaryFolder;

constexpr size_t kPart = size_t{5} << 20;  // the least that S3 takes

class ObjectStoreTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "folder") {
      auto opened = OpenObjectStore(folder_.path());
      ASSERT_OK(opened);
      objects_ = *std::move(opened);
      return;
    }
    const char* endpoint = std::getenv("DOCMEM_TEST_S3");
    if (endpoint == nullptr) GTEST_SKIP() << "no object store: see tests/with_swift.py";
    const auto variable = [&](const char* name) {
      return std::string(name) == "AWS_ENDPOINT_URL" ? endpoint : std::getenv(name);
    };
    // Each test has a prefix of its own in the bucket.
    const std::string where =
        absl::StrCat("s3://", std::getenv("DOCMEM_TEST_S3_BUCKET"), folder_.path());
    auto place = ParseS3Place(where, variable);
    ASSERT_OK(place);
    objects_ = S3ObjectStore(*std::move(place), {}, kPart);
  }

  absl::Status Put(const std::string& key, const std::string& text) {
    return objects_->Put(key, FileInMemory(text));
  }

  absl::StatusOr<std::string> Get(const std::string& key, size_t bytes) {
    std::string text(bytes, '\0');
    const absl::Status status = objects_->Get(key, std::as_writable_bytes(std::span(text)));
    if (!status.ok()) return status;
    return text;
  }

  TemporaryFolder folder_;
  std::unique_ptr<ObjectStore> objects_;
};

TEST_P(ObjectStoreTest, AnObjectIsReadBack) {
  ASSERT_OK(Put("artifacts/001/a-1.cache", "payload"));
  EXPECT_EQ(*Get("artifacts/001/a-1.cache", 7), "payload");
  ASSERT_OK(Put("identity", "a key without a folder"));
  EXPECT_EQ(*Get("identity", 22), "a key without a folder");
}

TEST_P(ObjectStoreTest, AnEmptyObjectIsAnObject) {
  ASSERT_OK(Put("artifacts/001/empty", ""));
  EXPECT_OK(Get("artifacts/001/empty", 0));
  EXPECT_TRUE(absl::IsDataLoss(Get("artifacts/001/empty", 1).status()));
}

TEST_P(ObjectStoreTest, WhatIsAbsentIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(Get("artifacts/001/none", 1).status()));
  EXPECT_TRUE(absl::IsNotFound(Get("artifacts/001/none", 0).status()));
}

TEST_P(ObjectStoreTest, AnotherLengthIsDataLoss) {
  ASSERT_OK(Put("artifacts/001/a", "payload"));
  EXPECT_TRUE(absl::IsDataLoss(Get("artifacts/001/a", 6).status()));
  EXPECT_TRUE(absl::IsDataLoss(Get("artifacts/001/a", 8).status()));
  EXPECT_TRUE(absl::IsDataLoss(Get("artifacts/001/a", 0).status()));
}

TEST_P(ObjectStoreTest, PuttingAgainReplaces) {
  ASSERT_OK(Put("artifacts/001/a", "first"));
  ASSERT_OK(Put("artifacts/001/a", "second"));
  EXPECT_EQ(*Get("artifacts/001/a", 6), "second");
}

TEST_P(ObjectStoreTest, LengthsAroundAPartAreReadBack) {
  for (const size_t bytes : {kPart - 1, kPart, kPart + 1, 2 * kPart, 2 * kPart + 7}) {
    std::string text(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 131 >> 7);
    const std::string key = absl::StrCat("artifacts/002/", bytes);
    ASSERT_OK(Put(key, text));
    const auto read = Get(key, bytes);
    ASSERT_OK(read);
    EXPECT_TRUE(*read == text) << bytes;
  }
}

TEST_P(ObjectStoreTest, DeletingTakesWhatBeginsSoAndNothingElse) {
  for (const char* key :
       {"artifacts/001/12-a", "artifacts/001/12-b", "artifacts/001/123-a", "artifacts/002/12-a"}) {
    ASSERT_OK(Put(key, "x"));
  }
  ASSERT_OK(objects_->DeleteAll("artifacts/001/12-"));
  EXPECT_TRUE(absl::IsNotFound(Get("artifacts/001/12-a", 1).status()));
  EXPECT_TRUE(absl::IsNotFound(Get("artifacts/001/12-b", 1).status()));
  EXPECT_OK(Get("artifacts/001/123-a", 1));
  EXPECT_OK(Get("artifacts/002/12-a", 1));
  EXPECT_OK(objects_->DeleteAll("artifacts/001/12-"));
  EXPECT_OK(objects_->DeleteAll("artifacts/fff/9-"));
}

TEST_P(ObjectStoreTest, ADeletedLargeObjectIsGone) {
  ASSERT_OK(Put("artifacts/001/7-a", std::string(kPart + 1, 'x')));
  ASSERT_OK(objects_->DeleteAll("artifacts/001/7-"));
  EXPECT_TRUE(absl::IsNotFound(Get("artifacts/001/7-a", kPart + 1).status()));
}

class BrokenFile : public FileInMemory {
 public:
  using FileInMemory::FileInMemory;
  absl::Status Read(uint64_t offset, std::span<std::byte> buffer) const override {
    if (offset + buffer.size() >= bytes()) return absl::UnavailableError("the disk is gone");
    return FileInMemory::Read(offset, buffer);
  }
};

TEST_P(ObjectStoreTest, AFileThatCannotBeReadLeavesNothing) {
  for (const size_t bytes : {size_t{10}, 2 * kPart}) {
    EXPECT_TRUE(absl::IsUnavailable(
        objects_->Put("artifacts/001/5-a", BrokenFile(std::string(bytes, 'x')))));
    EXPECT_TRUE(absl::IsNotFound(Get("artifacts/001/5-a", bytes).status()));
  }
  ASSERT_OK(objects_->DeleteAll("artifacts/001/5-"));
  if (GetParam() == "folder") {
    EXPECT_EQ(store_test::BytesBelow(folder_.path()), 0u);
  }
}

TEST_P(ObjectStoreTest, ManyThreadsAtOnce) {
  constexpr int kThreads = 6;
  constexpr int kRounds = 5;
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < kRounds; ++round) {
        const std::string key = absl::StrCat("artifacts/001/", thread, "-", round);
        const std::string text = absl::StrCat("text ", thread, " ", round);
        if (!Put(key, text).ok()) continue;
        const auto read = Get(key, text.size());
        if (read.ok() && *read == text) ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, kThreads * kRounds);
}

TEST_P(ObjectStoreTest, ManyThreadsPutOneKey) {
  const std::string text(1000, 'x');
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < 10; ++round) {
        if (!Put("identity", text).ok()) ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(*Get("identity", text.size()), text);
}

INSTANTIATE_TEST_SUITE_P(Places, ObjectStoreTest, ::testing::Values("folder", "s3"),
                         [](const auto& test) { return test.param; });

TEST(OpenObjectStoreTest, AFolderThatIsNotThereIsNotMade) {
  const TemporaryFolder folder;
  const std::string missing = folder.path() + "/volume";
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenObjectStore(missing).status()));
  EXPECT_FALSE(std::filesystem::exists(missing));
}

TEST(OpenObjectStoreTest, OtherPlacesAreRefused) {
  for (const char* where : {"", "relative/folder", "http://host/bucket", "s3:bucket"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(OpenObjectStore(where).status())) << where;
  }
}

}  // namespace
}  // namespace docmem::store
