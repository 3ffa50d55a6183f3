#include "server/telemetry/log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace docmem::server {
namespace {

TEST(Log, ALineIsOneJsonObjectWhateverItsValuesHold) {
  const std::string line = Log::Format(
      LogLevel::kWarning, "refused",
      {{"id", std::string("a\"b\n\xFF")}, {"count", 3}, {"seconds", 0.5}, {"ready", false}});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["level"], "warning");
  EXPECT_EQ(json["event"], "refused");
  EXPECT_EQ(json["id"], "a\"b\n\uFFFD");
  EXPECT_EQ(json["count"], 3);
  EXPECT_EQ(json["seconds"], 0.5);
  EXPECT_EQ(json["ready"], false);
  EXPECT_EQ(json["time"].get<std::string>().back(), 'Z');
}

TEST(Log, OnlyLinesFromTheLevelOnAreWritten) {
  Log log(LogLevel::kWarning);
  testing::internal::CaptureStderr();
  log.Info("quiet");
  log.Error("loud", {{"why", "{} %s"}});
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_EQ(written.find("quiet"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(written)["why"], "{} %s");
}

TEST(Log, LevelsHaveNames) {
  LogLevel level = LogLevel::kInfo;
  EXPECT_TRUE(ParseLogLevel("error", &level));
  EXPECT_EQ(level, LogLevel::kError);
  EXPECT_FALSE(ParseLogLevel("loud", &level));
}

}  // namespace
}  // namespace docmem::server
