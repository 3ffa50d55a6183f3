#include "server/janitor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/time/clock.h"

namespace docmem::server {
namespace {

TEST(Janitor, CollectsGarbageAgainAndAgainUntilItIsDestroyed) {
  const std::string folder = testing::TempDir() + "docmem_janitor_test";
  std::filesystem::remove_all(folder);
  store::AdapterStoreOptions options;
  options.folder = folder;
  options.orphan_age = absl::ZeroDuration();
  auto store = store::AdapterStore::Open(std::move(options));
  ASSERT_TRUE(store.ok()) << store.status();
  Timer timer;
  Executor executor({.threads = 1});
  Log log(LogLevel::kError);
  const std::string orphan = folder + "/temporary/0000000000001000.cache";
  {
    const Janitor janitor({store->get(), &timer, &executor, &log}, absl::Milliseconds(5));
    for (int round = 0; round < 2; ++round) {
      std::filesystem::create_directories(folder + "/temporary");
      std::ofstream(orphan) << "bytes";
      for (int i = 0; i < 400 && std::filesystem::exists(orphan); ++i) {
        absl::SleepFor(absl::Milliseconds(5));
      }
      EXPECT_FALSE(std::filesystem::exists(orphan)) << "round " << round;
    }
  }
  std::ofstream(orphan) << "bytes";
  absl::SleepFor(absl::Milliseconds(30));
  EXPECT_TRUE(std::filesystem::exists(orphan));
  store->reset();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace docmem::server
