#include "server/telemetry/audit_log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"

namespace docmem::server {
namespace {

using Json = nlohmann::json;

class AuditLogTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path_); }
  void TearDown() override { std::filesystem::remove(path_); }

  std::unique_ptr<AuditLog> Open(const std::string& path) {
    auto opened = AuditLog::Open(path, {&metrics_, &log_});
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? *std::move(opened) : nullptr;
  }
  static std::vector<Json> LinesOf(const std::string& path) {
    std::vector<Json> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
    return lines;
  }
  double Lost() const {
    const std::string text = metrics_.Text();
    const std::string name = "\ndocmem_audit_lines_lost_total ";
    return std::stod(text.substr(text.find(name) + name.size()));
  }

  const std::string path_ = testing::TempDir() + "docmem_audit_log_test";
  Metrics metrics_{"test"};
  Log log_{LogLevel::kError};
};

TEST(AuditLogFormat, ALineIsOneJsonObjectWithoutWhatIsNotKnown) {
  AuditEntry entry{.principal = "a\n\"b\xFF",
                   .method = "Document.Delete",
                   .collection = "law",
                   .id = "d",
                   .ids = 1,
                   .code = "NOT_FOUND",
                   .reason = "DOCUMENT_NOT_FOUND",
                   .duration = absl::Milliseconds(250)};
  const std::string text = AuditLog::Format(entry, absl::UnixEpoch());
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const Json line = Json::parse(text);
  EXPECT_EQ(line["time"], "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(line["principal"], "a\n\"b\uFFFD");
  EXPECT_EQ(line["method"], "Document.Delete");
  EXPECT_EQ(line["seconds"], 0.25);
  for (const char* unknown : {"peer", "request_id", "trace_id", "ids"}) {
    EXPECT_FALSE(line.contains(unknown)) << unknown;
  }
}

TEST_F(AuditLogTest, EveryLineIsThereWhenItIsClosed) {
  {
    const auto audit = Open(path_);
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&] {
        for (int i = 0; i < 500; ++i) audit->Write({.method = "Query.Ask", .code = "OK"});
      });
    }
  }
  EXPECT_EQ(LinesOf(path_).size(), 2000U);
  EXPECT_EQ(Lost(), 0);
  struct stat file = {};
  ASSERT_EQ(stat(path_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777U, 0600U);
}

TEST_F(AuditLogTest, ItGoesOnBehindWhatIsThereAndUnderItsNameAfterReopen) {
  {
    Open(path_)->Write({.method = "first", .code = "OK"});
  }
  const std::string moved = path_ + ".1";
  {
    const auto audit = Open(path_);
    audit->Write({.method = "second", .code = "OK"});
    for (int i = 0; i < 1000 && LinesOf(path_).size() < 2; ++i) {
      absl::SleepFor(absl::Milliseconds(5));
    }
    std::filesystem::rename(path_, moved);
    audit->Reopen();
    audit->Write({.method = "third", .code = "OK"});
  }
  EXPECT_EQ(LinesOf(moved).size(), 2U);
  ASSERT_EQ(LinesOf(path_).size(), 1U);
  EXPECT_EQ(LinesOf(path_)[0]["method"], "third");
  std::filesystem::remove(moved);
}

TEST_F(AuditLogTest, LinesThatCannotBeWrittenAreCounted) {
  {
    const auto audit = Open("/dev/full");
    for (int i = 0; i < 10; ++i) audit->Write({.method = "Query.Ask", .code = "OK"});
  }
  EXPECT_EQ(Lost(), 10);
}

TEST_F(AuditLogTest, AFileThatCannotBeOpenedIsNamed) {
  const auto opened = AuditLog::Open("/nowhere/audit", {&metrics_, &log_});
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(opened.status().message().find("/nowhere/audit"), absl::string_view::npos);
}

}  // namespace
}  // namespace docmem::server
