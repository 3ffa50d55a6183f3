#include "adapter_store/files/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "adapter_store/files/fault_injection_file_system.h"
#include "adapter_store/testing/store_test_util.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::TemporaryFolder;

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span<const char>(text));
}

absl::Status WriteFile(FileSystem& files, const std::string& path, const std::string& text) {
  absl::StatusOr<std::unique_ptr<WritableFile>> file = files.Create(path);
  if (!file.ok()) return file.status();
  absl::Status status = (*file)->Append(BytesOf(text));
  status.Update((*file)->Sync());
  return status;
}

absl::StatusOr<std::string> ReadFile(FileSystem& files, const std::string& path) {
  absl::StatusOr<std::unique_ptr<ReadableFile>> file = files.Open(path);
  if (!file.ok()) return file.status();
  std::string text((*file)->bytes(), '\0');
  absl::Status status = (*file)->Read(0, std::as_writable_bytes(std::span<char>(text)));
  if (!status.ok()) return status;
  return text;
}

class FileSystemTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<FileSystem>> opened = OpenPosixFileSystem(root());
    ASSERT_OK(opened);
    files_ = *std::move(opened);
    ASSERT_OK(files_->CreateFolder("sub"));
  }

  std::string root() const { return folder_.path() + "/root"; }

  // Every call on `path` is refused in one of the two allowed ways.
  void ExpectRefused(const std::string& path) {
    const auto refused = [](const absl::Status& status) {
      return absl::IsFailedPrecondition(status) || absl::IsAlreadyExists(status);
    };
    EXPECT_TRUE(refused(files_->Create(path).status())) << path;
    EXPECT_TRUE(refused(files_->Open(path).status())) << path;
  }

  TemporaryFolder folder_;
  std::unique_ptr<FileSystem> files_;
};

TEST_F(FileSystemTest, WritesRenamesListsAndRemoves) {
  ASSERT_OK(WriteFile(*files_, "sub/a", "hello"));
  EXPECT_TRUE(absl::IsAlreadyExists(files_->Create("sub/a").status()));
  ASSERT_OK(files_->Rename("sub/a", "b"));
  ASSERT_OK(files_->SyncFolder(""));
  EXPECT_EQ(*ReadFile(*files_, "b"), "hello");
  EXPECT_EQ(files_->Stat("b")->bytes, 5u);
  EXPECT_TRUE(files_->Stat("sub")->is_folder);
  const auto entries = files_->List("");
  ASSERT_OK(entries);
  EXPECT_EQ(entries->size(), 2u);
  ASSERT_OK(files_->Remove("b"));
  EXPECT_TRUE(absl::IsNotFound(files_->Remove("b")));
  EXPECT_TRUE(absl::IsNotFound(files_->Open("b").status()));
}

TEST_F(FileSystemTest, ReadingPastTheEndIsDataLoss) {
  ASSERT_OK(WriteFile(*files_, "a", "hello"));
  std::string buffer(6, '\0');
  EXPECT_TRUE(absl::IsDataLoss(
      (*files_->Open("a"))->Read(0, std::as_writable_bytes(std::span<char>(buffer)))));
}

TEST_F(FileSystemTest, RemovedFileStaysReadableWhileOpen) {
  ASSERT_OK(WriteFile(*files_, "a", "hello"));
  const auto file = files_->Open("a");
  ASSERT_OK(file);
  ASSERT_OK(files_->Remove("a"));
  std::string buffer(5, '\0');
  ASSERT_OK((*file)->Read(0, std::as_writable_bytes(std::span<char>(buffer))));
  EXPECT_EQ(buffer, "hello");
}

TEST_F(FileSystemTest, PathsThatLeaveTheFolderAreRefused) {
  std::ofstream(folder_.path() + "/outside") << "secret";
  for (const std::string path :
       {"../outside", "sub/../../outside", "/etc/passwd", "", ".", "..", "sub/", "sub//b"}) {
    ExpectRefused(path);
  }
  ExpectRefused(std::string("a\0b", 3));
}

TEST_F(FileSystemTest, SymlinksAreNeverFollowed) {
  const std::string outside = folder_.path() + "/outside";
  std::filesystem::create_directory(outside);
  std::ofstream(outside + "/target") << "untouched";
  std::filesystem::create_symlink(outside + "/target", root() + "/link");
  std::filesystem::create_directory_symlink(outside, root() + "/folder");
  ExpectRefused("link");
  ExpectRefused("folder/target");
  EXPECT_TRUE(absl::IsFailedPrecondition(files_->List("folder").status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(files_->CreateFolder("folder")));
  EXPECT_TRUE(absl::IsFailedPrecondition(files_->Lock("link").status()));
  EXPECT_FALSE(files_->Stat("link")->is_regular);
  ASSERT_OK(WriteFile(*files_, "new", "x"));
  ASSERT_OK(files_->Rename("new", "link"));
  EXPECT_EQ(*ReadFile(*files_, "link"), "x") << "a rename replaces the link itself";
  std::string text;
  std::ifstream(outside + "/target") >> text;
  EXPECT_EQ(text, "untouched");
}

TEST_F(FileSystemTest, PipeUnderOurNameIsRefusedWithoutHanging) {
  ASSERT_EQ(mkfifo((root() + "/pipe").c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(files_->Open("pipe").status()));
}

TEST_F(FileSystemTest, LockExcludesASecondHolder) {
  auto lock = files_->Lock("lock");
  ASSERT_OK(lock);
  const auto second = OpenPosixFileSystem(root());
  ASSERT_OK(second);
  EXPECT_TRUE(absl::IsFailedPrecondition((*second)->Lock("lock").status()));
  lock->reset();
  EXPECT_OK((*second)->Lock("lock"));
}

class FaultInjectionTest : public FileSystemTest {
 protected:
  void SetUp() override {
    FileSystemTest::SetUp();
    faulty_ = FaultInjectionFileSystem::Over(std::move(files_));
  }
  std::shared_ptr<FaultInjectionFileSystem> faulty_;
};

TEST_F(FaultInjectionTest, PowerLossTakesBackWhatWasNotSynced) {
  ASSERT_OK(WriteFile(*faulty_, "named", "durable"));
  ASSERT_OK(faulty_->SyncFolder(""));
  ASSERT_OK(WriteFile(*faulty_, "unnamed", "its folder wasn't synced"));
  auto file = faulty_->Create("sub/partly");
  ASSERT_OK(file);
  ASSERT_OK((*file)->Append(BytesOf("synced")));
  ASSERT_OK((*file)->Sync());
  ASSERT_OK((*file)->Append(BytesOf("lost")));
  ASSERT_OK(faulty_->SyncFolder("sub"));
  ASSERT_OK(faulty_->Rename("named", "renamed"));
  ASSERT_OK(faulty_->LosePower());
  EXPECT_EQ(*ReadFile(*faulty_, "named"), "durable");
  EXPECT_TRUE(absl::IsNotFound(faulty_->Stat("renamed").status()));
  EXPECT_TRUE(absl::IsNotFound(faulty_->Stat("unnamed").status()));
  EXPECT_EQ(*ReadFile(*faulty_, "sub/partly"), "synced");
  EXPECT_FALSE((*file)->Append(BytesOf("x")).ok()) << "the handle belongs to a dead process";
}

TEST_F(FaultInjectionTest, PowerLossBringsBackUnsyncedRemovals) {
  ASSERT_OK(WriteFile(*faulty_, "a", "back"));
  ASSERT_OK(faulty_->SyncFolder(""));
  ASSERT_OK(faulty_->Remove("a"));
  ASSERT_OK(faulty_->LosePower());
  EXPECT_EQ(*ReadFile(*faulty_, "a"), "back");
  ASSERT_OK(faulty_->Remove("a"));
  ASSERT_OK(faulty_->SyncFolder(""));
  ASSERT_OK(faulty_->LosePower());
  EXPECT_TRUE(absl::IsNotFound(faulty_->Stat("a").status()));
}

TEST_F(FaultInjectionTest, RenameOverAnotherFileIsTakenBackWithIt) {
  ASSERT_OK(WriteFile(*faulty_, "a", "old"));
  ASSERT_OK(WriteFile(*faulty_, "b", "new"));
  ASSERT_OK(faulty_->SyncFolder(""));
  ASSERT_OK(faulty_->Rename("b", "a"));
  ASSERT_OK(faulty_->LosePower());
  EXPECT_EQ(*ReadFile(*faulty_, "a"), "old");
  EXPECT_EQ(*ReadFile(*faulty_, "b"), "new");
}

TEST_F(FaultInjectionTest, EachFaultDoesWhatItSays) {
  faulty_->FailAt(1, Fault::kError);
  EXPECT_TRUE(absl::IsUnavailable(faulty_->Create("a").status()));
  auto file = faulty_->Create("a");
  ASSERT_OK(file);
  faulty_->FailAt(1, Fault::kShortWrite);
  EXPECT_TRUE(absl::IsUnavailable((*file)->Append(BytesOf("12345678"))));
  EXPECT_EQ(faulty_->Stat("a")->bytes, 4u);
  faulty_->FailAt(1, Fault::kNoSpace);
  EXPECT_TRUE(absl::IsResourceExhausted((*file)->Append(BytesOf("12345678"))));
  faulty_->FailAt(1, Fault::kBitFlip);
  ASSERT_OK((*file)->Append(BytesOf("zz")));
  EXPECT_NE(*ReadFile(*faulty_, "a"), "12341234zz");
  faulty_->FailAt(1, Fault::kLostSync);
  ASSERT_OK((*file)->Sync());
  ASSERT_OK(faulty_->SyncFolder(""));
  faulty_->FailAt(1, Fault::kCrash);
  EXPECT_FALSE(faulty_->Stat("a").ok());
  EXPECT_TRUE(faulty_->triggered());
  EXPECT_FALSE(faulty_->Stat("a").ok());
  ASSERT_OK(faulty_->LosePower());
  EXPECT_EQ(faulty_->Stat("a")->bytes, 0u) << "the lost sync made nothing durable";
}

}  // namespace
}  // namespace docmem::store
