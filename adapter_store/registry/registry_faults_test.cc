// A fault at every call that the database makes on its files: while the registry is migrated, and
// while documents are published, imported and deleted. Each time the next start finds what was
// there before the change or what the change made of it.

#include <sqlite3.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>

#include "absl/strings/str_format.h"
#include "adapter_store/registry/row_codec.h"
#include "adapter_store/registry/sqlite_registry.h"
#include "adapter_store/registry/sqlite_schema.h"
#include "adapter_store/testing/faulty_sqlite.h"
#include "adapter_store/testing/faulty_store.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::CheckWhole;
using store_test::FaultySqlite;
using store_test::FaultyStore;
using store_test::Import;
using store_test::Ingest;
using store_test::Key;
using store_test::Long;
using store_test::SpecOf;
using store_test::SqliteFault;
using store_test::TemporaryFolder;

constexpr const char* kOld[] = {"CREATE TABLE t (a TEXT NOT NULL);"};
constexpr const char* kNew[] = {
    kOld[0],
    "ALTER TABLE t ADD COLUMN b TEXT NOT NULL DEFAULT 'b'; UPDATE t SET b = a || '!';"
    "CREATE TABLE u (c TEXT NOT NULL); INSERT INTO u SELECT b FROM t; CREATE INDEX i ON t (b);"};
constexpr SqliteFault kFaults[] = {SqliteFault::kError, SqliteFault::kFull, SqliteFault::kCrash,
                                   SqliteFault::kTornWrite};

std::string DatabaseOf(const TemporaryFolder& folder) { return folder.path() + "/registry.db"; }

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

absl::StatusOr<std::unique_ptr<AdapterStore>> OpenStore(const TemporaryFolder& folder) {
  AdapterStoreOptions options;
  options.folder = folder.path();
  return AdapterStore::Open(std::move(options));
}

// `change` once without a fault to count its calls, then with each fault at each call, each time on
// a folder that `prepare` has made; `check` looks at what is left, told whether `change` said OK.
// With a `step` not every call is tried, and each fault has others.
void Sweep(const std::function<void(const TemporaryFolder&)>& prepare,
           const std::function<absl::Status(const TemporaryFolder&)>& change,
           const std::function<void(const TemporaryFolder&, bool)>& check, uint64_t step = 1) {
  uint64_t calls = 0;
  {
    TemporaryFolder folder;
    prepare(folder);
    FaultySqlite sqlite;
    ASSERT_OK(change(folder));
    calls = sqlite.calls();
  }
  ASSERT_GT(calls, 3u);
  uint64_t first = 0;
  for (const SqliteFault fault : kFaults) {
    for (uint64_t call = 1 + first++ % step; call <= calls; call += step) {
      SCOPED_TRACE(
          absl::StrFormat("fault %d at call %d of %d", static_cast<int>(fault), call, calls));
      TemporaryFolder folder;
      prepare(folder);
      absl::Status status;
      {
        FaultySqlite sqlite;
        sqlite.FailAt(call, fault);
        status = change(folder);
      }
      check(folder, status.ok());
    }
  }
  std::printf("%d calls\n", static_cast<int>(calls));
}

TEST(MigrationFaultsTest, ARegistryIsAsItWasOrMigrated) {
  Sweep(
      [](const TemporaryFolder& folder) {
        ASSERT_OK(OpenSqliteRegistryWith(DatabaseOf(folder), kOld));
        Ask(DatabaseOf(folder),
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) "
            "INSERT INTO t SELECT 'row ' || i FROM n");
      },
      [](const TemporaryFolder& folder) {
        return OpenSqliteRegistryWith(DatabaseOf(folder), kNew).status();
      },
      [](const TemporaryFolder& folder, bool done) {
        const std::string path = DatabaseOf(folder);
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
  Sweep([&](const TemporaryFolder& folder) { Ask(DatabaseOf(folder), statements.str()); },
        [](const TemporaryFolder& folder) { return OpenStore(folder).status(); },
        [](const TemporaryFolder& folder, bool) {
          const auto store = OpenStore(folder);
          ASSERT_OK(store);
          const auto document = (*store)->GetDocument(Key("contract"));
          ASSERT_OK(document);
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
  Sweep([](const TemporaryFolder&) {},
        [](const TemporaryFolder& folder) { return OpenStore(folder).status(); },
        [](const TemporaryFolder& folder, bool) { EXPECT_OK(OpenStore(folder)); }, Long() ? 1 : 9);
}

// What is there before, and "other".
void Fill(const TemporaryFolder& folder) {
  const auto store = OpenStore(folder);
  ASSERT_OK(store);
  for (const char* id : {"other", "a", "gone"}) {
    ASSERT_OK(Ingest(**store, Key(id), std::string("text of ") + id, 1));
  }
}

// Publication, import, replacement and deletion, one after the other.
absl::Status ChangeAll(const TemporaryFolder& folder) {
  auto opened = OpenStore(folder);
  if (!opened.ok()) return opened.status();
  AdapterStore& store = **opened;
  absl::Status status = Ingest(store, Key("new"), "new", 1).status();
  status.Update(Import(store, Key("imported"), "imported"));
  const auto old = store.GetDocument(Key("a"));
  status.Update(old.status());
  if (old.ok()) status.Update(Import(store, Key("a"), "replaced", old->revision));
  status.Update(store.DeleteDocument(Key("gone"), 0));
  return status;
}

void CheckAll(const TemporaryFolder& folder, bool done) {
  FaultyStore next(folder.path());
  EXPECT_EQ(CheckWhole(*next.store, folder.path()), 0u);
  const auto is = [&](const char* id, const std::string& text) {
    const auto found = next.store->GetDocument(Key(id));
    return found.ok() && found->state == DocumentState::kReady &&
           found->spec.text_sha256 == SpecOf(text).text_sha256;
  };
  const bool replaced = is("a", "replaced");
  EXPECT_TRUE(replaced || is("a", "text of a"));
  if (!done) return;
  EXPECT_TRUE(replaced && is("new", "new") && is("imported", "imported"));
  EXPECT_FALSE(next.store->GetDocument(Key("gone")).ok());
}

TEST(RegistryFaultsTest, AFaultAtAnyCallOfTheDatabaseLeavesAConsistentStore) {
  Sweep(Fill, ChangeAll, CheckAll, Long() ? 1 : 17);
}

}  // namespace
}  // namespace docmem::store
