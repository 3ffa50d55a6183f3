// A PostgreSQL server for tests; tests/with_postgres.py starts one.

#pragma once

#include <libpq-fe.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "adapter_store/files/digest.h"
#include "gtest/gtest.h"

namespace docmem::store::store_test {

/// A libpq connection string of a database in which tests may make schemas; null: there is none.
inline const char* TestPostgres() { return std::getenv("DOCMEM_TEST_POSTGRES"); }

/// Runs statements in the database at `where`.
inline void PostgresScript(const std::string& where, const std::string& statements) {
  const std::unique_ptr<PGconn, void (*)(PGconn*)> session(PQconnectdb(where.c_str()), PQfinish);
  PQsetNoticeProcessor(session.get(), [](void*, const char*) {}, nullptr);
  const std::unique_ptr<PGresult, void (*)(PGresult*)> result(
      PQexec(session.get(), statements.c_str()), PQclear);
  const ExecStatusType status = PQresultStatus(result.get());
  EXPECT_TRUE(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
      << PQerrorMessage(session.get());
}

/// The test's database with a schema of the folder's own.
inline std::string PostgresOf(const std::string& folder) {
  const std::string schema = absl::StrCat("test_", absl::Hex(Xxh3Of(folder), absl::kZeroPad16));
  PostgresScript(TestPostgres(), absl::StrCat("CREATE SCHEMA IF NOT EXISTS ", schema));
  return absl::StrCat(TestPostgres(), " options='-c search_path=", schema, "'");
}

}  // namespace docmem::store::store_test
