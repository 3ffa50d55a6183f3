#include "adapter_store/files/local_artifact_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_format.h"
#include "adapter_store/errors.h"
#include "adapter_store/files/digest.h"
#include "adapter_store/files/fault_injection_file_system.h"
#include "adapter_store/files/text_codec.h"
#include "adapter_store/testing/store_test_util.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::ArtifactBytes;
using store_test::TemporaryFolder;

ArtifactProducer Of(const std::string& bytes) {
  return [bytes](ArtifactWriter& writer) {
    return writer.Append(std::as_bytes(std::span<const char>(bytes)));
  };
}

class LocalArtifactFilesTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(1 << 20); }

  void Open(uint64_t budget) {
    artifacts_.reset();
    files_ = FaultInjectionFileSystem::Over(*OpenPosixFileSystem(folder_.path()));
    auto opened = LocalArtifactFiles::Open(files_.get(), budget);
    ASSERT_OK(opened);
    artifacts_ = *std::move(opened);
  }

  absl::StatusOr<WrittenFile> Write(const FileRef& ref, const std::string& bytes) {
    absl::StatusOr<DiskReservation> reservation = artifacts_->Reserve(bytes.size());
    if (!reservation.ok()) return reservation.status();
    return artifacts_->Write(ref, *std::move(reservation), Of(bytes));
  }

  absl::Status PublishWritten(const FileRef& ref) {
    StoredFile file;
    file.id = ref.id;
    file.kind = ref.kind;
    return artifacts_->Publish(std::span(&file, 1));
  }

  WrittenFile Publish(const FileRef& ref, const std::string& bytes) {
    auto written = Write(ref, bytes);
    EXPECT_OK(written);
    EXPECT_OK(PublishWritten(ref));
    return *written;
  }

  absl::Status Read(const FileRef& ref, const WrittenFile& written, std::string* text) {
    text->assign(written.bytes, '\0');
    return artifacts_->Read(ref, written.digest, std::as_writable_bytes(std::span<char>(*text)));
  }

  std::string PathOf(const FileRef& ref, const char* suffix) {
    return absl::StrFormat("%s/artifacts/%02x/%016x.%s", folder_.path(), ref.id % 64, ref.id,
                           suffix);
  }

  TemporaryFolder folder_;
  std::shared_ptr<FaultInjectionFileSystem> files_;
  std::unique_ptr<LocalArtifactFiles> artifacts_;
};

constexpr FileRef kRef = {513, ArtifactKind::kCache};

TEST_F(LocalArtifactFilesTest, PublishedFileIsReadBackAndFoundAgain) {
  const WrittenFile written = Publish(kRef, "payload");
  std::string text;
  EXPECT_OK(Read(kRef, written, &text));
  EXPECT_EQ(text, "payload");
  EXPECT_TRUE(std::filesystem::exists(PathOf(kRef, "cache")));
  Open(1 << 20);
  EXPECT_EQ(artifacts_->budget().used(), 7u);
  const auto found = artifacts_->List();
  ASSERT_OK(found);
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().ref, kRef);
  EXPECT_FALSE(found->front().temporary);
}

TEST_F(LocalArtifactFilesTest, UnpublishedFileIsNotReadable) {
  const auto written = Write(kRef, "payload");
  ASSERT_OK(written);
  std::string text;
  EXPECT_TRUE(absl::IsNotFound(Read(kRef, *written, &text)));
  EXPECT_TRUE(artifacts_->List()->front().temporary);
}

TEST_F(LocalArtifactFilesTest, TruncationAtEveryLengthAndEveryFlippedByteIsDataLoss) {
  const std::string payload(200, 'p');
  const WrittenFile written = Publish(kRef, payload);
  const std::string path = PathOf(kRef, "cache");
  std::string text;
  for (size_t i = 0; i < payload.size(); ++i) {
    const int fd = open(path.c_str(), O_RDWR);
    ASSERT_EQ(pwrite(fd, "q", 1, static_cast<off_t>(i)), 1);
    EXPECT_TRUE(absl::IsDataLoss(Read(kRef, written, &text))) << "byte " << i;
    ASSERT_EQ(pwrite(fd, "p", 1, static_cast<off_t>(i)), 1);
    close(fd);
  }
  EXPECT_OK(Read(kRef, written, &text));
  for (size_t length = payload.size(); length-- > 0;) {
    ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(length)), 0);
    EXPECT_TRUE(absl::IsDataLoss(Read(kRef, written, &text))) << "length " << length;
  }
}

TEST_F(LocalArtifactFilesTest, EmptyFileIsAFile) {
  const WrittenFile written = Publish(kRef, "");
  std::string text;
  EXPECT_OK(Read(kRef, written, &text));
}

TEST_F(LocalArtifactFilesTest, WritingMoreThanDeclaredFailsAndLeavesNothing) {
  auto reservation = artifacts_->Reserve(3);
  ASSERT_OK(reservation);
  EXPECT_FALSE(artifacts_->Write(kRef, *std::move(reservation), Of("four")).ok());
  EXPECT_EQ(ArtifactBytes(folder_.path()), 0u);
  EXPECT_EQ(artifacts_->budget().used() + artifacts_->budget().reserved(), 0u);
}

TEST_F(LocalArtifactFilesTest, ProducerThatIgnoresAFailureStillFails) {
  auto reservation = artifacts_->Reserve(3);
  ASSERT_OK(reservation);
  EXPECT_FALSE(artifacts_
                   ->Write(kRef, *std::move(reservation),
                           [](ArtifactWriter& writer) {
                             writer.Append(std::vector<std::byte>(4)).IgnoreError();
                             return absl::OkStatus();
                           })
                   .ok());
}

TEST_F(LocalArtifactFilesTest, BudgetIsExactToTheByte) {
  Open(10);
  Publish({1, ArtifactKind::kText}, "12345");
  EXPECT_TRUE(absl::IsResourceExhausted(artifacts_->Reserve(6).status()));
  Publish({2, ArtifactKind::kText}, "12345");
  const absl::Status full = artifacts_->Reserve(1).status();
  EXPECT_EQ(ReasonOf(full), reason::kDiskBudgetExceeded);
  EXPECT_EQ(DetailsOf(full).at("need_bytes"), "1");
  EXPECT_EQ(DetailsOf(full).at("free_bytes"), "0");
  EXPECT_EQ(*artifacts_->Remove({1, ArtifactKind::kText}), 5u);
  EXPECT_OK(artifacts_->Reserve(5));
}

TEST_F(LocalArtifactFilesTest, BudgetSmallerThanWhatIsThereRefusesWritesOnly) {
  const WrittenFile written = Publish(kRef, "payload");
  Open(3);
  std::string text;
  EXPECT_OK(Read(kRef, written, &text));
  EXPECT_TRUE(absl::IsResourceExhausted(artifacts_->Reserve(1).status()));
  EXPECT_EQ(*artifacts_->Remove(kRef), 7u);
}

TEST_F(LocalArtifactFilesTest, CounterEqualsTheDiskAfterEveryFault) {
  const std::string payload(1000, 'x');
  for (const Fault fault : {Fault::kError, Fault::kNoSpace, Fault::kShortWrite}) {
    for (uint64_t call = 1; call < 12; ++call) {
      files_->FailAt(call, fault);
      const FileRef ref = {static_cast<int64_t>(call), ArtifactKind::kCache};
      if (Write(ref, payload).ok()) {
        PublishWritten(ref).IgnoreError();
      }
      EXPECT_EQ(artifacts_->budget().used(), ArtifactBytes(folder_.path())) << call;
      EXPECT_EQ(artifacts_->budget().reserved(), 0u);
      artifacts_->Remove(ref).IgnoreError();
      EXPECT_EQ(artifacts_->budget().used(), ArtifactBytes(folder_.path())) << call;
      files_->FailAt(0, fault);
      EXPECT_OK(artifacts_->Remove(ref));
      EXPECT_EQ(ArtifactBytes(folder_.path()), 0u);
    }
  }
}

TEST_F(LocalArtifactFilesTest, SymlinkInPlaceOfAFileIsRefusedAndItsTargetUntouched) {
  const WrittenFile written = Publish(kRef, "payload");
  const std::string outside = folder_.path() + "/outside";
  std::ofstream(outside) << "payload";
  std::filesystem::remove(PathOf(kRef, "cache"));
  std::filesystem::create_symlink(outside, PathOf(kRef, "cache"));
  std::string text;
  EXPECT_TRUE(absl::IsFailedPrecondition(Read(kRef, written, &text)));
  EXPECT_OK(artifacts_->Remove(kRef));
  EXPECT_TRUE(std::filesystem::exists(outside));
}

TEST_F(LocalArtifactFilesTest, ForeignFilesAreLeftAlone) {
  std::ofstream(folder_.path() + "/artifacts/01/README") << "hands off";
  std::ofstream(folder_.path() + "/artifacts/02/0000000000000001.cache") << "wrong folder";
  EXPECT_TRUE(artifacts_->List()->empty());
}

TEST(FileNameTest, OnlyOurNamesParse) {
  EXPECT_EQ(ParseFileName("0000000000000201.cache"), (FileRef{513, ArtifactKind::kCache}));
  EXPECT_EQ(ParseFileName("0000000000000001.checkpoint"), (FileRef{1, ArtifactKind::kCheckpoint}));
  for (const char* name :
       {"", "1.cache", "0000000000000000.cache", "0000000000000201", "0000000000000201.cache2",
        "000000000000020G.cache", "0000000000000201.CACHE", "-000000000000201.cache",
        "ffffffffffffffff.cache", "0000000000000201.text~"}) {
    EXPECT_FALSE(ParseFileName(name).has_value()) << name;
  }
}

TEST(DigestTest, KnownValues) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Xxh3Hasher hasher;
  EXPECT_EQ(hasher.Hex(), "99aa06d3014798d86001c324468d497f") << "XXH3-128 of nothing";
  hasher.Update(std::as_bytes(std::span<const char>("ab", 2)));
  hasher.Update(std::as_bytes(std::span<const char>("c", 1)));
  Xxh3Hasher whole;
  whole.Update(std::as_bytes(std::span<const char>("abc", 3)));
  EXPECT_EQ(hasher.Hex(), whole.Hex());
}

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span<const char>(text));
}

TEST(TextCodecTest, RoundTrips) {
  for (const std::string& text : {std::string(), std::string("x"), std::string(1 << 20, 'a')}) {
    const std::string frame = CompressText(text);
    EXPECT_EQ(*DecompressText(BytesOf(frame), text.size()), text);
  }
}

TEST(TextCodecTest, WrongLengthTruncationAndFlippedBitsAreDataLoss) {
  const std::string text = "a text that is long enough to be compressed compressed compressed";
  const std::string frame = CompressText(text);
  EXPECT_TRUE(absl::IsDataLoss(DecompressText(BytesOf(frame), text.size() + 1).status()));
  EXPECT_TRUE(absl::IsDataLoss(DecompressText(BytesOf(frame + "x"), text.size()).status()));
  for (size_t i = 0; i < frame.size(); ++i) {
    EXPECT_FALSE(DecompressText(BytesOf(frame.substr(0, i)), text.size()).ok());
    std::string damaged = frame;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    const auto result = DecompressText(BytesOf(damaged), text.size());
    EXPECT_TRUE(!result.ok() || *result == text) << "byte " << i;
  }
}

TEST(TextCodecTest, FrameThatDeclaresMoreThanTheRegistryIsRefused) {
  const std::string bomb = CompressText(std::string(64 << 20, 'a'));
  EXPECT_LT(bomb.size(), size_t{10000});
  EXPECT_TRUE(absl::IsDataLoss(DecompressText(BytesOf(bomb), 1000).status()));
}

}  // namespace
}  // namespace docmem::store
