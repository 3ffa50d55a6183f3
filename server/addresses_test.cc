#include "server/addresses.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace docmem::server {
namespace {

TEST(WriteAddresses, AReaderSeesAllThreeAndNothingElseIsLeft) {
  const std::string folder = testing::TempDir() + "docmem_addresses_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string path = folder + "/addresses.json";
  std::ofstream(path) << "old";
  ASSERT_TRUE(WriteAddresses({"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}, path).ok());
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file);
  EXPECT_EQ(json["grpc"], "127.0.0.1:1");
  EXPECT_EQ(json["health"], "127.0.0.1:2");
  EXPECT_EQ(json["metrics"], "127.0.0.1:3");
  const std::filesystem::directory_iterator files(folder);
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
  std::filesystem::remove_all(folder);
}

TEST(WriteAddresses, AFolderThatIsNotThereIsNamed) {
  const absl::Status status = WriteAddresses({}, "/nowhere/addresses.json");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("/nowhere/addresses.json"), absl::string_view::npos);
}

}  // namespace
}  // namespace docmem::server
