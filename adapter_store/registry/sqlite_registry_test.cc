#include "adapter_store/registry/sqlite_registry.h"

#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "adapter_store/registry/artifact_tables.h"
#include "adapter_store/registry/collection_table.h"
#include "adapter_store/registry/document_table.h"
#include "adapter_store/registry/row_codec.h"
#include "adapter_store/registry/sqlite_schema.h"
#include "adapter_store/registry/training_job_table.h"
#include "adapter_store/registry/word_table.h"
#include "adapter_store/status_macros.h"
#include "adapter_store/testing/store_test_util.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::TemporaryFolder;

constexpr const char* kOne[] = {"CREATE TABLE t (a TEXT NOT NULL);"};
constexpr const char* kTwo[] = {kOne[0], "ALTER TABLE t ADD COLUMN b TEXT NOT NULL DEFAULT 'b';"};
constexpr const char* kBroken[] = {kOne[0], "ALTER TABLE t ADD COLUMN b TEXT; nonsense;"};

class SqliteRegistryTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/registry.db"; }

  absl::StatusOr<std::string> Value(Registry& registry, const std::string& statement) {
    std::string value;
    absl::Status status = registry.Read([&](Sql& sql) {
      return sql.Query(statement, {}, [&](const SqlRow& row) {
        value = TextOf(row[0]);
        return absl::OkStatus();
      });
    });
    if (!status.ok()) return status;
    return value;
  }

  /// A database that was saved with sqlite3's .dump.
  void Restore(const std::string& name) {
    std::ifstream dump(std::string(DOCMEM_SOURCE_DIR) + "/adapter_store/registry/testdata/" + name);
    std::stringstream statements;
    statements << dump.rdbuf();
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &database), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(database, statements.str().c_str(), nullptr, nullptr, nullptr),
              SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_close(database);
  }

  TemporaryFolder folder_;
};

TEST_F(SqliteRegistryTest, MigrationKeepsRows) {
  {
    auto old = OpenSqliteRegistryWith(path(), kOne);
    ASSERT_OK(old);
    ASSERT_OK((*old)->Write([](Sql& sql) { return sql.Execute("INSERT INTO t VALUES ('x')"); }));
  }
  const auto migrated = OpenSqliteRegistryWith(path(), kTwo);
  ASSERT_OK(migrated);
  EXPECT_EQ(*Value(**migrated, "SELECT a || b FROM t"), "xb");
}

TEST_F(SqliteRegistryTest, FailedMigrationLeavesTheOldVersion) {
  ASSERT_OK(OpenSqliteRegistryWith(path(), kOne));
  EXPECT_FALSE(OpenSqliteRegistryWith(path(), kBroken).ok());
  const auto old = OpenSqliteRegistryWith(path(), kOne);
  ASSERT_OK(old);
  EXPECT_FALSE(Value(**old, "SELECT b FROM t").ok()) << "half a step was kept";
  EXPECT_OK(OpenSqliteRegistryWith(path(), kTwo));
}

TEST_F(SqliteRegistryTest, NewerVersionIsRefusedByNumber) {
  ASSERT_OK(OpenSqliteRegistryWith(path(), kTwo));
  const auto refused = OpenSqliteRegistryWith(path(), kOne);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()));
  EXPECT_NE(refused.status().message().find("version 2"), absl::string_view::npos);
  EXPECT_OK(OpenSqliteRegistryWith(path(), kTwo));
}

TEST_F(SqliteRegistryTest, DatabaseOfVersionOneIsMigratedWithAllItsRowsWhole) {
  Restore("version1.sql");
  const auto registry = OpenSqliteRegistry(path());
  ASSERT_OK(registry);
  ASSERT_OK((*registry)->Read([](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const auto collection, FindCollection(sql, "default"));
    EXPECT_FALSE(collection->damaged);
    STORE_ASSIGN_OR_RETURN(const auto document, FindDocument(sql, collection->id, "contract"));
    EXPECT_FALSE(document->damaged);
    EXPECT_EQ(document->spec.title, "Social Contract");
    EXPECT_EQ(document->current_adapter, 1u);
    EXPECT_EQ(LabelsOf(sql, document->id)->at("lang"), "en");
    STORE_ASSIGN_OR_RETURN(const auto caches, CachesOf(sql, document->id));
    EXPECT_EQ(caches.size(), 1u);
    EXPECT_FALSE(caches.at(0).damaged);
    STORE_ASSIGN_OR_RETURN(const auto adapter, FindAdapter(sql, document->id, 1));
    EXPECT_FALSE(adapter->damaged);
    STORE_ASSIGN_OR_RETURN(const auto files, FilesOf(sql, document->id));
    EXPECT_EQ(files.size(), 5u);
    for (const FileRow& file : files) EXPECT_FALSE(file.damaged);
    EXPECT_TRUE(ScanTrainingJobs(sql, [](const TrainingJobRow&) {
                  return absl::InternalError("a job in a registry that knew none");
                }).ok());
    return absl::OkStatus();
  }));
  EXPECT_EQ(*Value(**registry, "SELECT CAST(user_version AS TEXT) FROM pragma_user_version"), "5");
  ASSERT_OK((*registry)->Write([](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(auto files, FilesOf(sql, 1));
    for (const FileRow& file : files) STORE_RETURN_IF_ERROR(UpdateFileRow(sql, file));
    return InsertTrainingJob(sql, {.document_id = 1}).status();
  }));
  EXPECT_EQ(*Value(**registry, "SELECT group_concat(checksum, ' ') FROM files"),
            "237631476757498519 1253562788612684969 5508870105958940160 -2453056475705713972 "
            "-8691726231875192384");
}

TEST_F(SqliteRegistryTest, DatabaseOfVersionTwoIsMigratedWithItsTrainingUnderWay) {
  Restore("version2.sql");
  const auto registry = OpenSqliteRegistry(path());
  ASSERT_OK(registry);
  ASSERT_OK((*registry)->Write([](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const auto collection, FindCollection(sql, "default"));
    STORE_ASSIGN_OR_RETURN(const auto document, FindDocument(sql, collection->id, "lamps"));
    EXPECT_FALSE(document->damaged);
    STORE_ASSIGN_OR_RETURN(const auto caches, CachesOf(sql, document->id));
    EXPECT_EQ(caches.size(), 1u);
    EXPECT_FALSE(caches.at(0).damaged);
    EXPECT_EQ(caches.at(0).spec.system_text, "");
    int jobs = 0;
    STORE_RETURN_IF_ERROR(ScanTrainingJobs(sql, [&](const TrainingJobRow& job) {
      EXPECT_FALSE(job.damaged);
      EXPECT_EQ(job.document_id, document->id);
      ++jobs;
      return absl::OkStatus();
    }));
    EXPECT_EQ(jobs, 1);
    int checkpoints = 0;
    STORE_ASSIGN_OR_RETURN(const auto files, FilesOf(sql, document->id));
    for (const FileRow& file : files) {
      EXPECT_FALSE(file.damaged);
      checkpoints += file.role == FileRole::kCheckpoint ? 1 : 0;
    }
    EXPECT_EQ(checkpoints, 1);
    CacheRow added = caches.at(0);
    added.spec.id = std::string(64, 'a');
    added.spec.system_text = "Answer in rhyme.";
    return InsertCache(sql, added).status();
  }));
  ASSERT_OK((*registry)->Read([](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const auto caches, CachesOf(sql, 1));
    EXPECT_EQ(caches.at(1).spec.system_text, "Answer in rhyme.");
    EXPECT_FALSE(caches.at(1).damaged);
    return absl::OkStatus();
  }));
}

TEST_F(SqliteRegistryTest, DatabaseOfVersionThreeIsMigratedAndTakesWords) {
  Restore("version3.sql");
  const auto registry = OpenSqliteRegistry(path());
  ASSERT_OK(registry);
  ASSERT_OK((*registry)->Write([](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const auto collection, FindCollection(sql, "default"));
    EXPECT_FALSE(collection->damaged);
    STORE_ASSIGN_OR_RETURN(const auto document, FindDocument(sql, collection->id, "lamps"));
    EXPECT_FALSE(document->damaged);
    STORE_ASSIGN_OR_RETURN(const auto caches, CachesOf(sql, document->id));
    EXPECT_EQ(caches.size(), 2u);
    EXPECT_EQ(caches.at(1).spec.system_text, "Answer in rhyme.");
    for (const CacheRow& cache : caches) EXPECT_FALSE(cache.damaged);
    STORE_ASSIGN_OR_RETURN(const auto files, FilesOf(sql, document->id));
    EXPECT_EQ(files.size(), 3u);
    for (const FileRow& file : files) EXPECT_FALSE(file.damaged);
    STORE_RETURN_IF_ERROR(
        InsertWords(sql, collection->id, document->id, CountText("lamps"), CountTitle("Lamps")));
    STORE_ASSIGN_OR_RETURN(const uint64_t with,
                           DocumentsWith(sql, collection->id, TermsOf("lamp").at(0), 9));
    EXPECT_EQ(with, 1u);
    return absl::OkStatus();
  }));
}

TEST_F(SqliteRegistryTest, DatabaseOfVersionFourIsMigratedAndItsTrainingCanBeClaimed) {
  Restore("version4.sql");
  const auto registry = OpenSqliteRegistry(path());
  ASSERT_OK(registry);
  ASSERT_OK((*registry)->Write([](Sql& sql) -> absl::Status {
    const absl::Time now = absl::FromUnixSeconds(1);
    STORE_RETURN_IF_ERROR(InsertTrainingJob(sql, {.document_id = 1}).status());
    STORE_ASSIGN_OR_RETURN(const auto job, FindUnclaimedTrainingJob(sql, "one", now, 0));
    EXPECT_TRUE(job.has_value() && !job->damaged);
    STORE_RETURN_IF_ERROR(PutTrainingClaim(sql, job->id, {"one", now + absl::Seconds(1)}));
    STORE_ASSIGN_OR_RETURN(const auto none, FindUnclaimedTrainingJob(sql, "other", now, 0));
    EXPECT_FALSE(none.has_value());
    return absl::OkStatus();
  }));
  EXPECT_EQ(*Value(**registry, "SELECT CAST(words AS TEXT) FROM word_documents"), "1");
}

TEST_F(SqliteRegistryTest, SymlinkInPlaceOfTheDatabaseIsRefused) {
  ASSERT_OK(OpenSqliteRegistry(folder_.path() + "/elsewhere.db"));
  std::filesystem::create_symlink(folder_.path() + "/elsewhere.db", path());
  EXPECT_FALSE(OpenSqliteRegistry(path()).ok());
}

TEST_F(SqliteRegistryTest, DataFolderMayBeReachedThroughASymlink) {
  std::filesystem::create_directory(folder_.path() + "/real");
  std::filesystem::create_directory_symlink(folder_.path() + "/real", folder_.path() + "/link");
  EXPECT_OK(OpenSqliteRegistry(folder_.path() + "/link/registry.db"));
}

TEST_F(SqliteRegistryTest, DatabaseThatIsNoneIsDataLoss) {
  std::ofstream(path()) << std::string(8192, 'x');
  EXPECT_TRUE(absl::IsDataLoss(OpenSqliteRegistry(path()).status()));
}

TEST_F(SqliteRegistryTest, DeletedTextLeavesNoTraceInTheFile) {
  const std::string rare = "xylocopa-violacea";
  {
    const auto registry = OpenSqliteRegistry(path());
    ASSERT_OK(registry);
    ASSERT_OK((*registry)->Write([&](Sql& sql) { return PutSettingRow(sql, "key", rare); }));
    ASSERT_OK((*registry)->Write([](Sql& sql) { return PutSettingRow(sql, "key", "x"); }));
  }
  std::ifstream file(path(), std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  EXPECT_EQ(bytes.str().find(rare), std::string::npos);
}

TEST_F(SqliteRegistryTest, StatementInsideItsOwnResultIsAnErrorNotACrash) {
  const auto registry = OpenSqliteRegistry(path());
  ASSERT_OK(registry);
  const absl::Status status = (*registry)->Write([](Sql& sql) -> absl::Status {
    STORE_RETURN_IF_ERROR(PutSettingRow(sql, "a", "1"));
    return sql.Query("SELECT key FROM settings", {},
                     [&](const SqlRow&) { return sql.Execute("SELECT key FROM settings"); });
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
}

TEST_F(SqliteRegistryTest, ManyDifferentStatementsDoNotExhaustTheConnection) {
  const auto registry = OpenSqliteRegistry(path());
  ASSERT_OK(registry);
  ASSERT_OK((*registry)->Read([](Sql& sql) -> absl::Status {
    for (int i = 0; i < 1000; ++i) {
      STORE_RETURN_IF_ERROR(sql.Execute("SELECT " + std::to_string(i)));
    }
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace docmem::store
