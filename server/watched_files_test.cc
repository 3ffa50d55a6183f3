#include "server/watched_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace docmem::server {
namespace {

class WatchedFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    Write("a", "one");
    Write("b", "one");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
  }

  const std::string folder_ = testing::TempDir() + "docmem_watched_files_test";
};

TEST_F(WatchedFilesTest, AChangeIsToldOnceItHasSettled) {
  WatchedFiles files({Path("a"), Path("b")});
  EXPECT_FALSE(files.Changed());
  Write("b", "longer");
  EXPECT_FALSE(files.Changed());
  EXPECT_TRUE(files.Changed());
  EXPECT_FALSE(files.Changed());
}

TEST_F(WatchedFilesTest, WhatIsStillBeingWrittenIsNotTold) {
  WatchedFiles files({Path("a")});
  for (const char* text : {"1", "12", "1234"}) {
    Write("a", text);
    EXPECT_FALSE(files.Changed());
  }
  EXPECT_TRUE(files.Changed());
}

TEST_F(WatchedFilesTest, ReplacingRemovingAndAnotherTargetAreChanges) {
  std::filesystem::create_symlink(Path("a"), Path("link"));
  WatchedFiles files({Path("link")});
  const auto told = [&] { return !files.Changed() && files.Changed(); };
  std::filesystem::rename(Path("b"), Path("a"));
  EXPECT_TRUE(told());
  Write("c", "one");
  std::filesystem::remove(Path("link"));
  std::filesystem::create_symlink(Path("c"), Path("link"));
  EXPECT_TRUE(told());
  std::filesystem::remove(Path("c"));
  EXPECT_TRUE(told());
  Write("c", "back");
  EXPECT_TRUE(told());
}

}  // namespace
}  // namespace docmem::server
