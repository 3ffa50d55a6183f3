#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace docmem::store {

/// NULL, a number or UTF-8 text without NUL characters; nothing else is stored.
using SqlValue = std::variant<std::monostate, int64_t, std::string>;
using SqlRow = std::vector<SqlValue>;

/// One open transaction. Statements are ours alone, in the SQL that SQLite and PostgreSQL share,
/// with parameters $1, $2, … in the order of their first use. One thread; valid during the body of
/// the transaction.
class Sql {
 public:
  virtual ~Sql() = default;
  /// Calls `on_row` for each row of the result until it fails; its failure is returned.
  /// ALREADY_EXISTS for a broken unique constraint, FAILED_PRECONDITION for any other one. After a
  /// failure of the database's own the transaction can only be given up.
  virtual absl::Status Query(const std::string& statement, const std::vector<SqlValue>& parameters,
                             absl::FunctionRef<absl::Status(const SqlRow&)> on_row) = 0;
  /// What a SELECT that claims rows ends with, so that it passes over those that others are about
  /// to claim. Empty where there is one writer at a time.
  virtual const char* skip_locked() const { return ""; }
  /// A statement without a result.
  absl::Status Execute(const std::string& statement, const std::vector<SqlValue>& parameters = {});
};

/// A transactional database with DocMem's tables. Thread-safe. Failures of its own:
/// RESOURCE_EXHAUSTED (disk full), DATA_LOSS (the database is damaged), UNAVAILABLE (anything else
/// that keeps it from answering). Only UNAVAILABLE from `Write` may leave open whether the change
/// is stored: when the answer to a commit was lost, and the database couldn't be asked again.
class Registry {
 public:
  using Body = absl::FunctionRef<absl::Status(Sql&)>;

  virtual ~Registry() = default;
  /// Runs `body` alone among writers. OK: committed, and that survives a loss of power. Else:
  /// nothing has changed, and the body's or the database's failure is returned. The body may run
  /// again when the database asks for it, so it must not have effects outside.
  virtual absl::Status Write(Body body) = 0;
  /// Runs `body`, which only reads, on one consistent state; never waits for writers.
  virtual absl::Status Read(Body body) = 0;
};

/// Opens or creates the database file at `path`, reads all of it, and migrates it. DATA_LOSS naming
/// the file when its structure is damaged, FAILED_PRECONDITION naming both versions when a newer
/// DocMem wrote it: nothing is changed then.
absl::StatusOr<std::unique_ptr<Registry>> OpenSqliteRegistry(const std::string& path);

/// Opens the registry in a PostgreSQL database (13 or newer), in the first schema of its search
/// path, and makes or migrates the tables. `where` is a connection string or URL of libpq, which
/// also reads its environment variables and password file. Several processes may share it. Sessions
/// that break are replaced. UNAVAILABLE where no server answers, FAILED_PRECONDITION naming both
/// versions when a newer DocMem wrote the tables.
absl::StatusOr<std::unique_ptr<Registry>> OpenPostgresRegistry(const std::string& where);

}  // namespace docmem::store
