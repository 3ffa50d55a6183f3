#include "server/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

namespace docmem::server {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// A root folder with the files that tell a process its memory.
class MemoryLimitTest : public testing::Test {
 protected:
  MemoryLimitTest() : root_(testing::TempDir() + "docmem_memory_limit/") {
    std::filesystem::remove_all(root_);
    Write("proc/meminfo", "MemTotal:       4096 kB\nMemFree:         100 kB\n");
  }
  ~MemoryLimitTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  uint64_t Limit() { return ReadMemoryLimit(root_); }

  const std::string root_;
};

TEST_F(MemoryLimitTest, WithoutGroupsItIsTheMachines) { EXPECT_EQ(Limit(), 4 * kMiB); }

TEST_F(MemoryLimitTest, TheTightestEnclosingGroupOfVersion2Counts) {
  Write("proc/self/cgroup", "0::/pods/this\n");
  Write("sys/fs/cgroup/pods/this/memory.max", "max\n");
  EXPECT_EQ(Limit(), 4 * kMiB);
  Write("sys/fs/cgroup/pods/memory.max", "2097152\n");
  EXPECT_EQ(Limit(), 2 * kMiB);
  Write("sys/fs/cgroup/pods/this/memory.max", "1048576\n");
  EXPECT_EQ(Limit(), kMiB);
}

TEST_F(MemoryLimitTest, VersionOneCountsWithAndWithoutALimit) {
  Write("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/a\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(Limit(), 4 * kMiB);
  Write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1048576\n");
  EXPECT_EQ(Limit(), kMiB);
}

TEST_F(MemoryLimitTest, InsideAContainerTheGroupIsTheMountItself) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/memory.max", "1048576\n");
  EXPECT_EQ(Limit(), kMiB);
}

TEST(CheckMemory, ARefusalShowsTheSum) {
  const MemoryPlan plan{.weights = 300 * kMiB,
                        .device_budget = 150 * kMiB,
                        .host_budget = 30 * kMiB,
                        .kv_budget = 20 * kMiB,
                        .prefill_peak = 5 * kMiB,
                        .ingested_result = 7 * kMiB};
  EXPECT_TRUE(CheckMemory(plan, 1024 * kMiB).ok());
  const absl::Status refused = CheckMemory(plan, 1023 * kMiB);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(refused.message()),
      testing::AllOf(
          testing::HasSubstr("weights 300 MiB"), testing::HasSubstr("--device-budget 150 MiB"),
          testing::HasSubstr("--host-budget 30 MiB"), testing::HasSubstr("--kv-budget 20 MiB"),
          testing::HasSubstr("context 5 MiB + the longest context's cache at ratio 0 7 MiB"),
          testing::HasSubstr("reserve 512 MiB = 1024 MiB"),
          testing::HasSubstr("limit of 1023 MiB")));
}

TEST(CheckMemory, TheResultOfAnIngestionCounts) {
  EXPECT_TRUE(CheckMemory({.weights = 300 * kMiB}, 812 * kMiB).ok());
  EXPECT_FALSE(CheckMemory({.weights = 300 * kMiB, .ingested_result = kMiB}, 812 * kMiB).ok());
}

TEST(CheckMemory, BudgetsBeyondAllNumbersAreRefused) {
  const uint64_t most = std::numeric_limits<uint64_t>::max();
  EXPECT_FALSE(CheckMemory({.device_budget = most, .kv_budget = most}, 1024 * kMiB).ok());
}

TEST(Arithmetic, PartsThatAreNothingAreNotNamed) {
  EXPECT_EQ(Arithmetic({.host_budget = 30 * kMiB, .ingested_result = 12 * kMiB}),
            "--host-budget 30 MiB + the longest context's cache at ratio 0 12 MiB + "
            "reserve 512 MiB = 554 MiB");
}

}  // namespace
}  // namespace docmem::server
