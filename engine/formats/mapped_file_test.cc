#include "engine/formats/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

namespace docmem::engine {
namespace {

class MappedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "mapped_file_XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::ofstream(folder_ / "file") << "some bytes";
    std::ofstream(folder_ / "empty");
    std::filesystem::create_symlink("file", folder_ / "link");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  ErrorKind KindOf(const char* name, SymbolicLinks links = SymbolicLinks::kFollow) {
    try {
      MappedFile::Open(folder_ / name, links);
    } catch (const Error& error) {
      EXPECT_EQ(error.field(), (folder_ / name).string());
      return error.kind();
    }
    ADD_FAILURE() << name << " was opened";
    return ErrorKind::kInternal;
  }

  std::filesystem::path folder_;
};

TEST_F(MappedFileTest, ShowsTheBytesOfTheFile) {
  const MappedFile file = MappedFile::Open(folder_ / "file");
  EXPECT_EQ(file.text(), "some bytes");
  EXPECT_EQ(file.bytes().size(), 10u);
  EXPECT_EQ(file.path(), folder_ / "file");
}

TEST_F(MappedFileTest, AnEmptyFileIsAnEmptySpan) {
  EXPECT_TRUE(MappedFile::Open(folder_ / "empty").bytes().empty());
}

TEST_F(MappedFileTest, BytesKeepTheirAddressWhenTheObjectMoves) {
  MappedFile first = MappedFile::Open(folder_ / "file");
  const std::byte* address = first.bytes().data();
  MappedFile second = std::move(first);
  EXPECT_EQ(second.bytes().data(), address);
  MappedFile third = MappedFile::Open(folder_ / "empty");
  third = std::move(second);
  EXPECT_EQ(third.bytes().data(), address);
  EXPECT_EQ(third.text(), "some bytes");
}

TEST_F(MappedFileTest, BytesOutliveTheDeletionOfTheFile) {
  const MappedFile file = MappedFile::Open(folder_ / "file");
  std::filesystem::remove(folder_ / "file");
  EXPECT_EQ(file.text(), "some bytes");
}

TEST_F(MappedFileTest, FollowsLinksOnlyWhereTheyAreAllowed) {
  EXPECT_EQ(MappedFile::Open(folder_ / "link").text(), "some bytes");
  EXPECT_EQ(KindOf("link", SymbolicLinks::kRefuse), ErrorKind::kInvalidArgument);
}

TEST_F(MappedFileTest, RefusesWhatIsNotARegularFile) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(KindOf("pipe"), ErrorKind::kInvalidArgument);
  EXPECT_EQ(KindOf("."), ErrorKind::kInvalidArgument);
}

TEST_F(MappedFileTest, AMissingFileIsNotFound) {
  EXPECT_EQ(KindOf("absent"), ErrorKind::kNotFound);
  EXPECT_EQ(KindOf("file/below"), ErrorKind::kNotFound);
}

}  // namespace
}  // namespace docmem::engine
