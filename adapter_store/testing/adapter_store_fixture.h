#pragma once

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "absl/strings/str_format.h"
#include "adapter_store/adapter_store.h"
#include "adapter_store/errors.h"
#include "adapter_store/testing/store_test_util.h"
#include "adapter_store/testing/test_postgres.h"
#include "gtest/gtest.h"

namespace docmem::store::store_test {

/// A store in a folder of its own that can be closed, damaged and opened again. Its registry lies
/// in that folder, or in PostgreSQL where a server is there for tests.
class AdapterStoreTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(); }

  AdapterStoreOptions Options() {
    AdapterStoreOptions options;
    options.folder = folder_.path();
    options.budget_bytes = budget_;
    options.clock = [this] { return now_; };
    if (!IsSqlite()) options.postgres = PostgresOf(folder_.path());
    return options;
  }

  void Open() {
    store_.reset();
    auto opened = AdapterStore::Open(Options());
    ASSERT_OK(opened);
    store_ = *std::move(opened);
  }

  std::string PathOf(const StoredFile& file) {
    const char* const suffixes[] = {"", "text", "cache", "adapter", "checkpoint"};
    return absl::StrFormat("%s/artifacts/%02x/%016x.%s", folder_.path(), file.id % 64, file.id,
                           suffixes[static_cast<int>(file.kind)]);
  }

  void FlipByte(const StoredFile& file) {
    const int fd = open(PathOf(file).c_str(), O_RDWR);
    ASSERT_GE(fd, 0);
    char byte = 0;
    ASSERT_EQ(pread(fd, &byte, 1, 0), 1);
    byte = static_cast<char>(byte ^ 1);
    ASSERT_EQ(pwrite(fd, &byte, 1, 0), 1);
    close(fd);
  }

  // Behind the store's back, while it is closed, and without a check of foreign keys.
  void Sql(const std::string& statement) {
    if (!IsSqlite()) {
      return PostgresScript(PostgresOf(folder_.path()),
                            absl::StrCat("SET session_replication_role = replica;", statement));
    }
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open((folder_.path() + "/registry.db").c_str(), &database), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(database, statement.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_close(database);
  }

  // For what only a SQLite file can meet.
  static bool IsSqlite() { return TestPostgres() == nullptr; }

  uint64_t Used() { return store_->Stats()->used_bytes; }
  uint64_t OnDisk() { return ArtifactBytes(folder_.path()); }

  TemporaryFolder folder_;
  uint64_t budget_ = 0;
  absl::Time now_ = absl::Now();
  std::unique_ptr<AdapterStore> store_;
};

}  // namespace docmem::store::store_test
