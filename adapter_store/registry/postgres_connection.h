#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapter_store/registry/registry.h"

struct pg_conn;
struct pg_result;

namespace docmem::store {

/// One session with a PostgreSQL server, with its prepared statements. One thread at a time.
class PostgresConnection : public Sql {
 public:
  /// `where` is a libpq connection string or URL. UNAVAILABLE where no server answers within
  /// seconds, FAILED_PRECONDITION where it is older than version 13.
  static absl::StatusOr<std::unique_ptr<PostgresConnection>> Open(const std::string& where);
  ~PostgresConnection() override;
  PostgresConnection(const PostgresConnection&) = delete;
  PostgresConnection& operator=(const PostgresConnection&) = delete;

  absl::Status Query(const std::string& statement, const std::vector<SqlValue>& parameters,
                     absl::FunctionRef<absl::Status(const SqlRow&)> on_row) override;
  const char* skip_locked() const override { return " FOR UPDATE SKIP LOCKED"; }
  /// Several statements without parameters; what the last one gives goes to `on_row`.
  absl::Status Script(const std::string& statements,
                      absl::FunctionRef<absl::Status(const SqlRow&)> on_row);
  absl::Status Script(const std::string& statements);

  enum class Ending {
    kDone,      ///< committed, or rolled back for the body's own failure
    kConflict,  ///< rolled back by the server, which wants the body to be run again
    kLost,      ///< the session broke before COMMIT was sent: nothing has changed
    kUnknown,   ///< it broke behind that: `transaction()` has or hasn't happened
  };
  struct Outcome {
    absl::Status status;
    Ending ending = Ending::kDone;
  };
  /// `body` behind `begin`, which may end in a query for the transaction's id.
  Outcome Transact(const std::string& begin, Registry::Body body);
  /// Of the last `Transact`; empty where its `begin` didn't ask.
  const std::string& transaction() const { return transaction_; }

  /// The session is over; only the destructor is left.
  bool broken() const;

 private:
  explicit PostgresConnection(pg_conn* session) : session_(session) {}
  absl::StatusOr<std::string> Prepare(const std::string& statement);
  absl::Status Failure(const pg_result* result);
  absl::Status Commit();

  pg_conn* const session_;
  std::unordered_map<std::string, std::string> prepared_;  // statement → its name
  uint64_t next_name_ = 0;
  std::string transaction_;
  bool conflict_ = false;  // met since the transaction began
  bool lost_ = false;
};

}  // namespace docmem::store
