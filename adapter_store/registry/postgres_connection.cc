#include "adapter_store/registry/postgres_connection.h"

#include <libpq-fe.h>

#include <array>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "adapter_store/errors.h"
#include "adapter_store/registry/row_codec.h"
#include "adapter_store/status_macros.h"

namespace docmem::store {
namespace {

constexpr size_t kMaxPrepared = 256;
constexpr int kOldestServer = 130000;  // the first with pg_xact_status on 64-bit ids

// Types of columns that hold numbers, from PostgreSQL's catalog pg_type. SUM gives the last one.
constexpr Oid kInt8 = 20;
constexpr Oid kInt4 = 23;
constexpr Oid kNumeric = 1700;

// A commit is on the disk; a session that hangs in a transaction doesn't keep other writers out for
// longer than this.
constexpr char kSetUp[] =
    "SET synchronous_commit = on; SET lock_timeout = '15s';"
    "SET idle_in_transaction_session_timeout = '60s'; SET standard_conforming_strings = on";

struct FreeResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
using Result = std::unique_ptr<PGresult, FreeResult>;

SqlValue ColumnOf(const PGresult* result, int row, int column) {
  if (PQgetisnull(result, row, column) != 0) return std::monostate();
  std::string text(PQgetvalue(result, row, column),
                   static_cast<size_t>(PQgetlength(result, row, column)));
  const Oid type = PQftype(result, column);
  int64_t number = 0;
  const bool is_number = type == kInt8 || type == kInt4 || type == kNumeric;
  if (is_number && absl::SimpleAtoi(text, &number)) return number;
  return text;
}

bool IsGood(const PGresult* result) {
  const ExecStatusType status = PQresultStatus(result);
  return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

absl::Status EachRow(const PGresult* result,
                     absl::FunctionRef<absl::Status(const SqlRow&)> on_row) {
  SqlRow row(static_cast<size_t>(PQnfields(result)));
  for (int i = 0; i < PQntuples(result); ++i) {
    for (size_t column = 0; column < row.size(); ++column) {
      row[column] = ColumnOf(result, i, static_cast<int>(column));
    }
    STORE_RETURN_IF_ERROR(on_row(row));
  }
  return absl::OkStatus();
}

absl::Status Unavailable(const std::string& what) {
  return StoreError(absl::StatusCode::kUnavailable, reason::kRegistryUnavailable,
                    absl::StrCat("registry: ", what));
}

std::string FirstLine(const char* message) {
  const std::string text = message == nullptr ? "" : message;
  return text.substr(0, text.find('\n'));
}

}  // namespace

absl::StatusOr<std::unique_ptr<PostgresConnection>> PostgresConnection::Open(
    const std::string& where) {
  // What stands before dbname are defaults, which `where` may change.
  constexpr size_t kOptions = 7;
  const std::array<const char*, kOptions + 1> keys = {
      "connect_timeout",  "tcp_user_timeout", "keepalives_idle", "keepalives_interval",
      "application_name", "dbname",           "client_encoding", nullptr};
  const std::array<const char*, kOptions + 1> values = {"5",       "10000",       "10",   "5",
                                                        "docmemd", where.c_str(), "UTF8", nullptr};
  std::unique_ptr<PostgresConnection> connection(
      new PostgresConnection(PQconnectdbParams(keys.data(), values.data(), 1)));
  if (connection->broken()) {
    return Unavailable(FirstLine(PQerrorMessage(connection->session_)));
  }
  PQsetNoticeProcessor(connection->session_, [](void*, const char*) {}, nullptr);
  if (const int version = PQserverVersion(connection->session_); version < kOldestServer) {
    return absl::FailedPreconditionError(absl::StrCat("registry: the server is PostgreSQL ",
                                                      version / 10000,
                                                      ", DocMem needs 13 or a newer one"));
  }
  STORE_RETURN_IF_ERROR(connection->Script(kSetUp));
  return connection;
}

PostgresConnection::~PostgresConnection() { PQfinish(session_); }

bool PostgresConnection::broken() const { return PQstatus(session_) != CONNECTION_OK; }

absl::Status PostgresConnection::Query(const std::string& statement,
                                       const std::vector<SqlValue>& parameters,
                                       absl::FunctionRef<absl::Status(const SqlRow&)> on_row) {
  STORE_ASSIGN_OR_RETURN(const std::string name, Prepare(statement));
  std::vector<std::string> texts(parameters.size());
  std::vector<const char*> values(parameters.size(), nullptr);
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (std::holds_alternative<std::monostate>(parameters[i])) continue;
    const auto* number = std::get_if<int64_t>(&parameters[i]);
    texts[i] = number != nullptr ? absl::StrCat(*number) : TextOf(parameters[i]);
    values[i] = texts[i].c_str();
  }
  const Result result(PQexecPrepared(session_, name.c_str(), static_cast<int>(values.size()),
                                     values.data(), nullptr, nullptr, 0));
  if (!IsGood(result.get())) return Failure(result.get());
  return EachRow(result.get(), on_row);
}

absl::Status PostgresConnection::Script(const std::string& statements,
                                        absl::FunctionRef<absl::Status(const SqlRow&)> on_row) {
  const Result result(PQexec(session_, statements.c_str()));
  if (!IsGood(result.get())) return Failure(result.get());
  return EachRow(result.get(), on_row);
}

absl::Status PostgresConnection::Script(const std::string& statements) {
  return Script(statements, [](const SqlRow&) { return absl::OkStatus(); });
}

PostgresConnection::Outcome PostgresConnection::Transact(const std::string& begin,
                                                         Registry::Body body) {
  conflict_ = lost_ = false;
  transaction_.clear();
  absl::Status status = Script(begin, [this](const SqlRow& row) {
    transaction_ = TextOf(row[0]);
    return absl::OkStatus();
  });
  if (status.ok()) status = body(*this);
  const bool commits = status.ok() && !conflict_ && !lost_;
  if (commits) status = Commit();
  if (lost_) return {status, commits ? Ending::kUnknown : Ending::kLost};
  if (status.ok()) return {};
  if (PQtransactionStatus(session_) != PQTRANS_IDLE) Script("ROLLBACK").IgnoreError();
  return {status, conflict_ ? Ending::kConflict : Ending::kDone};
}

// A transaction in which a statement has failed is rolled back by COMMIT, without an error.
absl::Status PostgresConnection::Commit() {
  const Result result(PQexec(session_, "COMMIT"));
  if (!IsGood(result.get())) return Failure(result.get());
  if (std::string_view(PQcmdStatus(result.get())) == "COMMIT") return absl::OkStatus();
  return absl::InternalError("registry: a statement had failed, and nobody said so");
}

absl::StatusOr<std::string> PostgresConnection::Prepare(const std::string& statement) {
  const auto found = prepared_.find(statement);
  if (found != prepared_.end()) return found->second;
  if (prepared_.size() >= kMaxPrepared) {
    prepared_.clear();
    STORE_RETURN_IF_ERROR(Script("DEALLOCATE ALL"));
  }
  const std::string name = absl::StrCat("s", next_name_++);
  const Result result(PQprepare(session_, name.c_str(), statement.c_str(), 0, nullptr));
  if (!IsGood(result.get())) return Failure(result.get());
  prepared_.emplace(statement, name);
  return name;
}

// The classes of errors: appendix "PostgreSQL Error Codes" of its manual. Only the primary message
// is told: the details hold what users have stored.
absl::Status PostgresConnection::Failure(const pg_result* result) {
  if (broken()) {
    lost_ = true;
    return Unavailable(FirstLine(PQerrorMessage(session_)));
  }
  const char* const code_field = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* const message_field = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  const std::string_view code = code_field == nullptr ? "" : code_field;
  const std::string what = message_field == nullptr ? "no message" : message_field;
  const std::string message = absl::StrCat("registry: ", what);
  const std::string_view kind = code.substr(0, 2);
  if (code == "40001" || code == "40P01") conflict_ = true;
  if (code == "23505") return absl::AlreadyExistsError(message);
  if (kind == "23") return absl::FailedPreconditionError(message);
  if (code == "53100") {
    return StoreError(absl::StatusCode::kResourceExhausted, reason::kDiskFull,
                      absl::StrCat(message, "; free some space on the database server's disk"));
  }
  // Every statement is ours and fits our tables, so what is there is something else.
  if (kind == "42" || kind == "XX") {
    return absl::DataLossError(
        absl::StrCat(message, "; the registry's tables are damaged: restore them from a backup"));
  }
  return Unavailable(what);
}

}  // namespace docmem::store
