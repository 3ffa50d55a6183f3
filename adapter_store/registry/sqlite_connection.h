#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapter_store/registry/registry.h"

struct sqlite3;
struct sqlite3_stmt;

namespace docmem::store {

/// DATA_LOSS that names the registry's file.
absl::Status DamagedRegistry(const std::string& what);

/// One connection to a SQLite file, with its prepared statements. One thread at a time.
class SqliteConnection : public Sql {
 public:
  /// Makes the file when it isn't there. Symbolic links aren't followed.
  static absl::StatusOr<std::unique_ptr<SqliteConnection>> Open(const std::string& path);
  ~SqliteConnection() override;
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  absl::Status Query(const std::string& statement, const std::vector<SqlValue>& parameters,
                     absl::FunctionRef<absl::Status(const SqlRow&)> on_row) override;
  /// Several statements without parameters and results.
  absl::Status Script(const char* statements);
  /// `body` between `begin` and COMMIT; rolled back when it fails.
  absl::Status Transact(const char* begin, Registry::Body body);

 private:
  explicit SqliteConnection(sqlite3* database) : database_(database) {}
  absl::StatusOr<sqlite3_stmt*> Prepare(const std::string& statement);
  absl::Status Bind(sqlite3_stmt* prepared, const std::vector<SqlValue>& parameters);
  absl::Status Failure(int code) const;

  sqlite3* const database_;
  std::unordered_map<std::string, sqlite3_stmt*> prepared_;
};

}  // namespace docmem::store
