#include "adapter_store/registry/sqlite_connection.h"

#include <sqlite3.h>

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "adapter_store/errors.h"
#include "adapter_store/status_macros.h"

namespace docmem::store {
namespace {

constexpr size_t kMaxPrepared = 256;
constexpr int kBusyMilliseconds = 10000;

// Write-ahead log: readers go on while one writes. FULL: a commit is on the disk.
constexpr char kSetUp[] =
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"
    "PRAGMA trusted_schema = OFF; PRAGMA secure_delete = ON;";

SqlValue ColumnOf(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL:
      return std::monostate();
    case SQLITE_INTEGER:
      return static_cast<int64_t>(sqlite3_column_int64(statement, column));
    default: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
      const auto size = static_cast<size_t>(sqlite3_column_bytes(statement, column));
      return text == nullptr ? std::string() : std::string(text, size);
    }
  }
}

}  // namespace

absl::Status DamagedRegistry(const std::string& what) {
  return absl::DataLossError(absl::StrCat("the file 'registry.db' in the data folder is damaged: ",
                                          what, "; restore it from a backup"));
}

absl::StatusOr<std::unique_ptr<SqliteConnection>> SqliteConnection::Open(const std::string& path) {
  sqlite3* database = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                    SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(path.c_str(), &database, flags, nullptr);
  std::unique_ptr<SqliteConnection> connection(new SqliteConnection(database));
  if (code != SQLITE_OK) {
    return WithContext(connection->Failure(code), absl::StrCat("can't open registry '", path, "'"));
  }
  sqlite3_busy_timeout(database, kBusyMilliseconds);
  STORE_RETURN_IF_ERROR(connection->Script(kSetUp));
  return connection;
}

SqliteConnection::~SqliteConnection() {
  for (const auto& [statement, prepared] : prepared_) sqlite3_finalize(prepared);
  sqlite3_close(database_);
}

absl::Status SqliteConnection::Query(const std::string& statement,
                                     const std::vector<SqlValue>& parameters,
                                     absl::FunctionRef<absl::Status(const SqlRow&)> on_row) {
  STORE_ASSIGN_OR_RETURN(sqlite3_stmt * prepared, Prepare(statement));
  auto reset = absl::MakeCleanup([prepared] {
    sqlite3_reset(prepared);
    sqlite3_clear_bindings(prepared);
  });
  STORE_RETURN_IF_ERROR(Bind(prepared, parameters));
  SqlRow row(static_cast<size_t>(sqlite3_column_count(prepared)));
  int code = sqlite3_step(prepared);
  for (; code == SQLITE_ROW; code = sqlite3_step(prepared)) {
    for (size_t i = 0; i < row.size(); ++i) row[i] = ColumnOf(prepared, static_cast<int>(i));
    STORE_RETURN_IF_ERROR(on_row(row));
  }
  return code == SQLITE_DONE ? absl::OkStatus() : Failure(code);
}

absl::Status SqliteConnection::Script(const char* statements) {
  const int code = sqlite3_exec(database_, statements, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Failure(code);
}

absl::Status SqliteConnection::Transact(const char* begin, Registry::Body body) {
  STORE_RETURN_IF_ERROR(Script(begin));
  absl::Status status = body(*this);
  if (status.ok()) status = Script("COMMIT");
  // Some failures have rolled back already.
  if (!status.ok() && sqlite3_get_autocommit(database_) == 0) Script("ROLLBACK").IgnoreError();
  return status;
}

absl::StatusOr<sqlite3_stmt*> SqliteConnection::Prepare(const std::string& statement) {
  const auto found = prepared_.find(statement);
  if (found != prepared_.end() && sqlite3_stmt_busy(found->second) == 0) return found->second;
  if (found != prepared_.end()) {
    return absl::InternalError("a statement was run inside its own result");
  }
  if (prepared_.size() >= kMaxPrepared) {
    for (auto old = prepared_.begin(); old != prepared_.end();) {
      if (sqlite3_stmt_busy(old->second) != 0) {
        ++old;
        continue;
      }
      sqlite3_finalize(old->second);
      old = prepared_.erase(old);
    }
  }
  sqlite3_stmt* prepared = nullptr;
  const int code = sqlite3_prepare_v3(database_, statement.c_str(), -1, SQLITE_PREPARE_PERSISTENT,
                                      &prepared, nullptr);
  // Every statement is ours and fits our schema, so what lies on the disk is another.
  if (code == SQLITE_ERROR) return DamagedRegistry(sqlite3_errmsg(database_));
  if (code != SQLITE_OK) return Failure(code);
  prepared_.emplace(statement, prepared);
  return prepared;
}

absl::Status SqliteConnection::Bind(sqlite3_stmt* prepared,
                                    const std::vector<SqlValue>& parameters) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int index = static_cast<int>(i) + 1;
    int code = SQLITE_OK;
    if (const auto* number = std::get_if<int64_t>(&parameters[i])) {
      code = sqlite3_bind_int64(prepared, index, *number);
    } else if (const auto* text = std::get_if<std::string>(&parameters[i])) {
      code = sqlite3_bind_text64(prepared, index, text->data(), text->size(), SQLITE_STATIC,
                                 SQLITE_UTF8);
    }
    if (code != SQLITE_OK) return Failure(code);
  }
  return absl::OkStatus();
}

absl::Status SqliteConnection::Failure(int code) const {
  const char* const what = database_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(database_);
  const std::string message = absl::StrCat("registry: ", what);
  switch (code & 0xff) {
    case SQLITE_CONSTRAINT:
      if (code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY) {
        return absl::AlreadyExistsError(message);
      }
      return absl::FailedPreconditionError(message);
    case SQLITE_FULL:
      return StoreError(absl::StatusCode::kResourceExhausted, reason::kDiskFull,
                        absl::StrCat(message, "; free some space on the data folder's disk"));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return DamagedRegistry(what);
    case SQLITE_ERROR:
    case SQLITE_MISUSE:
    case SQLITE_RANGE:
      return absl::InternalError(message);
    default:
      return StoreError(absl::StatusCode::kUnavailable, reason::kRegistryUnavailable, message);
  }
}

}  // namespace docmem::store
