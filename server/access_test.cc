#include "server/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/formats/digest.h"

namespace docmem::server {
namespace {

using testing::HasSubstr;

class AccessTest : public testing::Test {
 protected:
  void Write(const std::string& text) const { std::ofstream(path_) << text; }
  static std::string LineOf(const std::string& name) {
    return absl::StrCat(name, " sha256:", engine::Sha256Hex(name), " query *\n");
  }
  static bool Knows(const Access& access, const std::string& name) {
    return access.authenticator()->Authenticate({.authorization = "Bearer " + name}).ok();
  }
  double Failures() const {
    const std::string text = metrics_.Text();
    const std::string name = "\ndocmem_token_reload_failures_total ";
    return std::stod(text.substr(text.find(name) + name.size()));
  }

  const std::string path_ = testing::TempDir() + "docmem_access_test";
  ServerOptions options_{.token_file = path_};
  Log log_{LogLevel::kError};
  Metrics metrics_{"test"};
};

TEST_F(AccessTest, WithoutATokenFileEverybodyIsLetIn) {
  options_.token_file.clear();
  const auto access = Access::Open(options_, &log_, &metrics_);
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_TRUE(Knows(**access, "anybody"));
  (*access)->Refresh(true);
  EXPECT_EQ(Failures(), 0);
}

TEST_F(AccessTest, AFileThatCannotBeReadKeepsTheDaemonFromStarting) {
  Write("a\n");
  EXPECT_THAT(std::string(Access::Open(options_, &log_, &metrics_).status().message()),
              HasSubstr("line 1, fields"));
  options_.token_file = path_ + ".absent";
  EXPECT_FALSE(Access::Open(options_, &log_, &metrics_).ok());
}

TEST_F(AccessTest, AChangedFileIsTakenAtTheSecondLookAndAtOnceWhenAsked) {
  Write(LineOf("a"));
  const auto access = Access::Open(options_, &log_, &metrics_);
  ASSERT_TRUE(access.ok()) << access.status();
  Write(LineOf("a") + LineOf("b"));
  (*access)->Refresh(false);
  EXPECT_FALSE(Knows(**access, "b"));
  (*access)->Refresh(false);
  EXPECT_TRUE(Knows(**access, "b"));
  Write(LineOf("c"));
  (*access)->Refresh(true);
  EXPECT_TRUE(Knows(**access, "c"));
  EXPECT_FALSE(Knows(**access, "a"));
}

TEST_F(AccessTest, ABadFileIsCountedOnceAndTheOneBeforeStays) {
  Write(LineOf("a"));
  const auto access = Access::Open(options_, &log_, &metrics_);
  ASSERT_TRUE(access.ok()) << access.status();
  Write("a nonsense\n");
  for (int look = 0; look < 5; ++look) (*access)->Refresh(false);
  EXPECT_EQ(Failures(), 1);
  EXPECT_TRUE(Knows(**access, "a"));
}

}  // namespace
}  // namespace docmem::server
