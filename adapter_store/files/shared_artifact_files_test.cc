#include "adapter_store/files/shared_artifact_files.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapter_store/testing/faulty_object_store.h"
#include "adapter_store/testing/store_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::ArtifactBytes;
using store_test::FaultyObjectStore;
using store_test::TemporaryFolder;
using ::testing::HasSubstr;

constexpr char kIdentity[] = "0123456789abcdef0123456789abcdef";

// One of several data folders on one shared place.
class Replica {
 public:
  Replica(const std::shared_ptr<ObjectStore>& objects, uint64_t budget)
      : files_(*OpenPosixFileSystem(folder_.path())), objects_(objects) {
    Open(budget);
  }

  void Open(uint64_t budget) {
    shared_.reset();
    auto local = LocalArtifactFiles::Open(files_.get(), budget);
    ASSERT_OK(local);
    auto opened = SharedArtifactFiles::Open(*std::move(local), objects_, kIdentity);
    ASSERT_OK(opened);
    shared_ = *std::move(opened);
  }

  absl::StatusOr<StoredFile> Publish(int64_t id, const std::string& text) {
    const FileRef ref = {id, ArtifactKind::kCache};
    absl::StatusOr<DiskReservation> reservation = shared_->Reserve(text.size());
    if (!reservation.ok()) return reservation.status();
    const NewFile file = FileFromMemory("", std::as_bytes(std::span(text)));
    auto written = shared_->Write(ref, *std::move(reservation), file.producer);
    if (!written.ok()) return written.status();
    StoredFile stored;
    stored.id = id;
    stored.kind = ArtifactKind::kCache;
    stored.bytes = written->bytes;
    stored.digest = written->digest;
    absl::Status status = shared_->Publish(std::span(&stored, 1));
    if (!status.ok()) return status;
    return stored;
  }

  absl::StatusOr<std::string> Read(const StoredFile& file) {
    std::string text(file.bytes, '\0');
    const absl::Status status =
        shared_->Read({file.id, file.kind}, file.digest, std::as_writable_bytes(std::span(text)));
    if (!status.ok()) return status;
    return text;
  }

  absl::Status Remove(const StoredFile& file) {
    return shared_->Remove({file.id, file.kind}).status();
  }

  SharedArtifactFiles& files() { return *shared_; }
  const std::string& folder() const { return folder_.path(); }
  /// The counter against the disk.
  void ExpectExact() {
    EXPECT_EQ(shared_->budget().used(), ArtifactBytes(folder()));
    EXPECT_EQ(shared_->budget().reserved(), 0u);
  }

 private:
  TemporaryFolder folder_;
  std::shared_ptr<FileSystem> files_;
  std::shared_ptr<ObjectStore> objects_;
  std::unique_ptr<SharedArtifactFiles> shared_;
};

class SharedArtifactFilesTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(PutIdentity(*objects_, kIdentity)); }

  void Down(const absl::Status& status) {
    objects_->put = objects_->get = objects_->remove = status;
  }

  // The only object's file.
  std::filesystem::path TheObject() const {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(place_.path() + "/artifacts")) {
      if (entry.is_regular_file()) return entry.path();
    }
    return "";
  }

  TemporaryFolder place_;
  std::shared_ptr<FaultyObjectStore> objects_ = std::make_shared<FaultyObjectStore>(place_.path());
};

TEST_F(SharedArtifactFilesTest, WhatOneReplicaPublishesAnotherReads) {
  Replica one(objects_, 100);
  Replica other(objects_, 100);
  const auto stored = one.Publish(513, "payload");
  ASSERT_OK(stored);
  EXPECT_EQ(*other.Read(*stored), "payload");
  EXPECT_EQ(TheObject().filename().string(),
            absl::StrCat("0000000000000201-", stored->digest, ".cache"));
  EXPECT_EQ(TheObject().parent_path().filename().string(), "201");
  one.ExpectExact();
  other.ExpectExact();
}

TEST_F(SharedArtifactFilesTest, ACopyIsReadWithoutThePlace) {
  Replica one(objects_, 100);
  Replica other(objects_, 100);
  const auto stored = one.Publish(1, "payload");
  ASSERT_OK(stored);
  ASSERT_OK(other.Read(*stored));
  const int before = objects_->gets;
  Down(absl::UnavailableError("down"));
  EXPECT_EQ(*one.Read(*stored), "payload");
  EXPECT_EQ(*other.Read(*stored), "payload");
  other.Open(100);  // another start of the daemon
  EXPECT_EQ(*other.Read(*stored), "payload");
  EXPECT_EQ(objects_->gets, before);
}

TEST_F(SharedArtifactFilesTest, TheCopyUsedLongestAgoGoesFirst) {
  Replica one(objects_, 25);
  std::vector<StoredFile> files;
  for (int64_t id = 1; id <= 2; ++id) files.push_back(*one.Publish(id, std::string(10, 'x')));
  ASSERT_OK(one.Read(files[0]));
  files.push_back(*one.Publish(3, std::string(10, 'x')));
  const int before = objects_->gets;
  ASSERT_OK(one.Read(files[0]));
  ASSERT_OK(one.Read(files[2]));
  EXPECT_EQ(objects_->gets, before);
  ASSERT_OK(one.Read(files[1]));
  EXPECT_EQ(objects_->gets, before + 1);
  one.ExpectExact();
}

TEST_F(SharedArtifactFilesTest, AFileLargerThanTheBudgetIsReadWithoutACopyAndNotWritten) {
  Replica large(objects_, 100);
  Replica small(objects_, 5);
  const auto stored = large.Publish(1, "payload");
  ASSERT_OK(stored);
  EXPECT_EQ(*small.Read(*stored), "payload");
  EXPECT_EQ(*small.Read(*stored), "payload");
  EXPECT_EQ(objects_->gets, 2);
  small.ExpectExact();
  EXPECT_TRUE(absl::IsResourceExhausted(small.Publish(2, "payload").status()));
}

TEST_F(SharedArtifactFilesTest, ADamagedCopyIsFetchedAgain) {
  Replica one(objects_, 100);
  const auto stored = one.Publish(1, "payload");
  ASSERT_OK(stored);
  for (const char* damage : {"paylaod", "pay", ""}) {
    std::ofstream(one.folder() + "/artifacts/01/0000000000000001.cache") << damage;
    EXPECT_EQ(*one.Read(*stored), "payload");
  }
  std::filesystem::remove(one.folder() + "/artifacts/01/0000000000000001.cache");
  EXPECT_EQ(*one.Read(*stored), "payload");
}

TEST_F(SharedArtifactFilesTest, ADamagedObjectIsDataLossAndLeavesNoCopy) {
  Replica one(objects_, 100);
  Replica other(objects_, 100);
  const auto stored = one.Publish(1, "payload");
  ASSERT_OK(stored);
  std::ofstream(TheObject()) << "paylaod";
  const absl::Status status = other.Read(*stored).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(status.message(), HasSubstr("another checksum"));
  EXPECT_EQ(ArtifactBytes(other.folder()), 0u);
}

TEST_F(SharedArtifactFilesTest, WhatPassesIsNoDamage) {
  Replica one(objects_, 100);
  const auto stored = one.Publish(1, "payload");
  ASSERT_OK(stored);
  for (const absl::Status& once :
       {absl::NotFoundError("a proxy says"), absl::DataLossError("cut")}) {
    Replica other(objects_, 100);
    objects_->once = once;
    EXPECT_EQ(*other.Read(*stored), "payload");
  }
}

TEST_F(SharedArtifactFilesTest, WhatAnEarlierStartWasWritingIsNoHindrance) {
  Replica one(objects_, 100);
  Replica other(objects_, 20);
  const auto stored = one.Publish(1, "payload");
  ASSERT_OK(stored);
  std::ofstream(other.folder() + "/temporary/0000000000000001.cache") << "payl";
  other.Open(20);
  other.ExpectExact();
  ASSERT_OK(other.Read(*stored));
  const int before = objects_->gets;
  ASSERT_OK(other.Read(*stored));
  EXPECT_EQ(objects_->gets, before);
  other.ExpectExact();
}

TEST_F(SharedArtifactFilesTest, ARemovedObjectIsNotFoundButALostPlaceIsUnavailable) {
  Replica one(objects_, 100);
  Replica other(objects_, 100);
  const auto stored = one.Publish(1, "payload");
  ASSERT_OK(stored);
  std::filesystem::remove(TheObject());
  EXPECT_TRUE(absl::IsNotFound(other.Read(*stored).status()));
  std::filesystem::remove(place_.path() + "/identity");
  EXPECT_TRUE(absl::IsUnavailable(other.Read(*stored).status()));
  std::ofstream(place_.path() + "/identity") << std::string(32, 'a');
  const absl::Status status = other.Read(*stored).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(status.message(), HasSubstr("another registry"));
}

TEST_F(SharedArtifactFilesTest, APlaceThatIsDownIsUnavailable) {
  Replica one(objects_, 100);
  Replica other(objects_, 100);
  const auto stored = one.Publish(1, "payload");
  ASSERT_OK(stored);
  Down(absl::UnavailableError("down"));
  EXPECT_TRUE(absl::IsUnavailable(other.Read(*stored).status()));
  EXPECT_TRUE(absl::IsUnavailable(one.Publish(2, "more").status()));
  EXPECT_TRUE(absl::IsUnavailable(one.Remove(*stored)));
  Down(absl::OkStatus());
  StoredFile abandoned;
  abandoned.id = 2;
  abandoned.kind = ArtifactKind::kCache;
  EXPECT_OK(one.Remove(abandoned));  // as its intent asks for
  one.ExpectExact();
}

TEST_F(SharedArtifactFilesTest, RemovingTakesObjectAndCopy) {
  Replica one(objects_, 100);
  const auto stored = one.Publish(1, "payload");
  ASSERT_OK(stored);
  ASSERT_OK(one.Remove(*stored));
  ASSERT_OK(one.Remove(*stored));
  EXPECT_TRUE(absl::IsNotFound(one.Read(*stored).status()));
  EXPECT_EQ(TheObject(), "");
  one.ExpectExact();
  EXPECT_EQ(one.files().budget().used(), 0u);
}

TEST_F(SharedArtifactFilesTest, ManyThreadsKeepTheCounterExact) {
  Replica writer(objects_, 0);
  Replica reader(objects_, 40);
  std::vector<StoredFile> files;
  for (int64_t id = 1; id <= 8; ++id) {
    files.push_back(*writer.Publish(id, absl::StrCat("payload ", id)));
  }
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 6; ++thread) {
    threads.emplace_back([&, thread] {
      for (unsigned round = 0; round < 200; ++round) {
        const StoredFile& file = files[(round * (thread + 1) + thread) % files.size()];
        const auto text = reader.Read(file);
        if (!text.ok() || *text != absl::StrCat("payload ", file.id)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  reader.ExpectExact();
  EXPECT_LE(reader.files().budget().used(), 40u);
}

}  // namespace
}  // namespace docmem::store
