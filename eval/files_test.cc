#include "eval/files.h"

#include <gtest/gtest.h>

#include "engine/model/testing.h"

namespace docmem::eval {
namespace {

using engine::testing::ErrorOf;

class FilesTest : public ::testing::Test {
 protected:
  std::filesystem::path Path(const char* name) const { return folder_.path() / name; }

  engine::testing::TemporaryFolder folder_;
};

TEST_F(FilesTest, AFileIsReplacedAndNothingElseIsLeft) {
  WriteDurably(Path("a"), "first");
  WriteDurably(Path("a"), "second");
  EXPECT_EQ(ReadWhole(Path("a")), "second");
  EXPECT_FALSE(std::filesystem::exists(Path("a.part")));
}

TEST_F(FilesTest, WhatCantBeWrittenIsNamed) {
  const auto error = ErrorOf([&] { WriteDurably(Path("absent/a"), "x"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->field(), Path("absent/a.part").string());
}

TEST_F(FilesTest, ALogKeepsItsLinesAndDropsACutOne) {
  {
    LineLog log(Path("log"));
    EXPECT_TRUE(log.TakeLines().empty());
    log.Append("one\ntwo\n");
    log.Append("thr");
  }
  LineLog log(Path("log"));
  EXPECT_EQ(log.TakeLines(), (std::vector<std::string>{"one", "two"}));
  log.Append("four\n");
  EXPECT_EQ(ReadWhole(Path("log")), "one\ntwo\nfour\n");
}

TEST_F(FilesTest, ALogHasOneWriter) {
  LineLog log(Path("log"));
  const auto error = ErrorOf([&] { LineLog second(Path("log")); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), engine::ErrorKind::kFailedPrecondition);
}

}  // namespace
}  // namespace docmem::eval
