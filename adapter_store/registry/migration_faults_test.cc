// A fault at every call that the database makes on its files while the registry is migrated, and at
// a first start. Each time the next start finds what was there before or what the change made of
// it.

#include <sqlite3.h>

#include <fstream>
#include <sstream>

#include "adapter_store/registry/sqlite_registry.h"
#include "adapter_store/testing/database_sweep.h"
#include "adapter_store/testing/faulty_store.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::DatabaseOf;
using store_test::Ingest;
using store_test::Key;
using store_test::Long;
using store_test::NamesTheFile;
using store_test::OpenStore;
using store_test::SaidOk;
using store_test::SqliteFault;
using store_test::Steps;
using store_test::Sweep;
using store_test::TemporaryFolder;
using store_test::Trial;

constexpr const char* kOld[] = {"CREATE TABLE t (a TEXT NOT NULL);"};
constexpr const char* kNew[] = {
    kOld[0],
    "ALTER TABLE t ADD COLUMN b TEXT NOT NULL DEFAULT 'b'; UPDATE t SET b = a || '!';"
    "CREATE TABLE u (c TEXT NOT NULL); INSERT INTO u SELECT b FROM t; CREATE INDEX i ON t (b);"};
std::string Ask(const std::string& path, const std::string& question) {
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  std::string answer;
  const auto take = [](void* out, int, char** columns, char**) {
    *static_cast<std::string*>(out) += columns[0];
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(database, question.c_str(), take, &answer, nullptr), SQLITE_OK)
      << sqlite3_errmsg(database);
  sqlite3_close(database);
  return answer;
}

Steps Start(const TemporaryFolder& folder) { return {{"start", OpenStore(folder).status()}}; }

TEST(MigrationFaultsTest, ARegistryIsAsItWasOrMigrated) {
  Sweep(
      [](const TemporaryFolder& folder) {
        ASSERT_OK(OpenSqliteRegistryWith(DatabaseOf(folder), kOld));
        Ask(DatabaseOf(folder),
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) "
            "INSERT INTO t SELECT 'row ' || i FROM n");
      },
      [](const TemporaryFolder& folder) {
        return Steps{{"start", OpenSqliteRegistryWith(DatabaseOf(folder), kNew).status()}};
      },
      [](const TemporaryFolder& folder, const Trial& trial, const Steps& steps) {
        const std::string path = DatabaseOf(folder);
        if (trial.fault == SqliteFault::kBitFlip) {  // these rows have no checksums
          const absl::Status status = OpenSqliteRegistryWith(path, kNew).status();
          EXPECT_TRUE(status.ok() || NamesTheFile(status)) << status;
          return;
        }
        const bool done = SaidOk(steps, "start") && !trial.lies();
        EXPECT_EQ(Ask(path, "PRAGMA integrity_check"), "ok");
        const std::string version = Ask(path, "PRAGMA user_version");
        EXPECT_TRUE(version == "2" || (version == "1" && !done)) << version;
        EXPECT_EQ(Ask(path, "SELECT count(*) FROM sqlite_schema WHERE name IN ('u', 'i')"),
                  version == "2" ? "2" : "0");
        EXPECT_EQ(Ask(path, "SELECT count(*) FROM t WHERE a LIKE 'row %'"), "200");
        EXPECT_OK(OpenSqliteRegistryWith(path, kNew));
        EXPECT_EQ(Ask(path, "SELECT count(*) FROM t, u WHERE t.b = u.c AND t.b = t.a || '!'"),
                  "200");
      });
}

TEST(MigrationFaultsTest, ASavedDatabaseIsMigratedWithAllItsRowsAfterAFaultAtAnyCallOfItsStart) {
  std::ifstream dump(std::string(DOCMEM_SOURCE_DIR) +
                     "/adapter_store/registry/testdata/version1.sql");
  std::stringstream statements;
  statements << dump.rdbuf();
  Sweep([&](const TemporaryFolder& folder) { Ask(DatabaseOf(folder), statements.str()); }, Start,
        [](const TemporaryFolder& folder, const Trial& trial, const Steps&) {
          const auto store = OpenStore(folder);
          const bool flipped = trial.fault == SqliteFault::kBitFlip;
          if (flipped && NamesTheFile(store.status())) return;
          ASSERT_OK(store);
          const auto document = (*store)->GetDocument(Key("contract"));
          ASSERT_OK(document);
          if (flipped && document->state == DocumentState::kQuarantined) return;
          EXPECT_EQ(document->state, DocumentState::kReady);
          EXPECT_EQ(document->spec.title, "Social Contract");
          EXPECT_EQ(document->caches.size(), 1u);
          EXPECT_EQ(document->adapter_count, 1u);
          EXPECT_OK((*store)->AddTrainingJob(document->key, "request", "report"));
          EXPECT_OK(Ingest(**store, Key("afterwards"), "text", 1));
        });
}

// A new data folder: the same, from version 0.
TEST(MigrationFaultsTest, AFolderWhoseFirstStartFailedStartsAgain) {
  Sweep([](const TemporaryFolder&) {}, Start,
        [](const TemporaryFolder& folder, const Trial& trial, const Steps&) {
          const absl::Status status = OpenStore(folder).status();
          const bool flipped = trial.fault == SqliteFault::kBitFlip;
          EXPECT_TRUE(status.ok() || (flipped && NamesTheFile(status))) << status;
        },
        Long() ? 1 : 9);
}

}  // namespace
}  // namespace docmem::store
