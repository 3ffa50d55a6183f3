#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "adapter_store/errors.h"
#include "adapter_store/registry/connection_pool.h"
#include "adapter_store/registry/postgres_connection.h"
#include "adapter_store/registry/postgres_schema.h"
#include "adapter_store/registry/registry.h"
#include "adapter_store/registry/row_codec.h"
#include "adapter_store/status_macros.h"
#include "adapter_store/sync.h"

namespace docmem::store {
namespace {

using Ending = PostgresConnection::Ending;
using Outcome = PostgresConnection::Outcome;

constexpr size_t kMaxReaders = 4;
// A server that is restarted breaks every session: the next one works.
constexpr int kAttempts = 3;
constexpr absl::Duration kDoubtLimit = absl::Seconds(10);
constexpr absl::Duration kDoubtPause = absl::Milliseconds(50);

// Writers are let in one at a time, on all machines: the lock belongs to the schema and ends with
// the transaction. Each of their statements sees what the writers before have committed.
constexpr char kBeginWrite[] =
    "BEGIN ISOLATION LEVEL READ COMMITTED;"
    "SELECT pg_advisory_xact_lock(1685021549, oid::int) FROM pg_namespace "
    "WHERE nspname = current_schema();"
    "SELECT pg_current_xact_id()::text";
constexpr char kBeginRead[] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

absl::StatusOr<int64_t> VersionOf(Sql& sql) {
  STORE_RETURN_IF_ERROR(
      sql.Execute("CREATE TABLE IF NOT EXISTS docmem_registry (version BIGINT NOT NULL)"));
  int64_t version = 0;
  STORE_RETURN_IF_ERROR(
      sql.Query("SELECT version FROM docmem_registry", {}, [&](const SqlRow& row) {
        version = IntOf(row[0]);
        return absl::OkStatus();
      }));
  return version;
}

absl::Status Migrate(PostgresConnection& connection) {
  const auto migrations = PostgresMigrations();
  const auto newest = static_cast<int64_t>(migrations.size());
  return connection
      .Transact(kBeginWrite,
                [&](Sql& sql) -> absl::Status {
                  STORE_ASSIGN_OR_RETURN(const int64_t version, VersionOf(sql));
                  if (version > newest) {
                    return absl::FailedPreconditionError(absl::StrCat(
                        "the registry has version ", version, ", this program knows up to ", newest,
                        "; use a newer DocMem"));
                  }
                  if (version == newest) return absl::OkStatus();
                  for (int64_t step = version; step < newest; ++step) {
                    STORE_RETURN_IF_ERROR(connection.Script(migrations[static_cast<size_t>(step)]));
                  }
                  STORE_RETURN_IF_ERROR(sql.Execute("DELETE FROM docmem_registry"));
                  return sql.Execute("INSERT INTO docmem_registry (version) VALUES ($1)", {newest});
                })
      .status;
}

class PostgresRegistry : public Registry {
 public:
  PostgresRegistry(std::string where, std::unique_ptr<PostgresConnection> writer)
      : where_(std::move(where)),
        readers_(kMaxReaders, [this] { return PostgresConnection::Open(where_); }),
        writer_(std::move(writer)) {}

  absl::Status Write(Body body) override {
    MutexLock lock(&mutex_);
    Outcome outcome;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      if (writer_ == nullptr || writer_->broken()) {
        writer_.reset();
        STORE_ASSIGN_OR_RETURN(writer_, PostgresConnection::Open(where_));
      }
      outcome = writer_->Transact(kBeginWrite, body);
      if (outcome.ending == Ending::kDone) return outcome.status;
      if (outcome.ending == Ending::kUnknown) {
        const std::string transaction = writer_->transaction();
        writer_.reset();
        STORE_ASSIGN_OR_RETURN(const bool committed, WasCommitted(transaction));
        if (committed) return absl::OkStatus();
      }
    }
    return outcome.status;
  }

  absl::Status Read(Body body) override {
    Outcome outcome;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      STORE_ASSIGN_OR_RETURN(std::unique_ptr<PostgresConnection> reader, readers_.Take());
      outcome = reader->Transact(kBeginRead, body);
      if (reader->broken()) {
        reader.reset();
        readers_.Drop();
      } else {
        readers_.GiveBack(std::move(reader));
      }
      if (outcome.ending == Ending::kDone) return outcome.status;
    }
    return outcome.status;
  }

 private:
  // The server knows, and a new session may ask it.
  absl::StatusOr<bool> WasCommitted(const std::string& transaction) {
    const absl::Time deadline = absl::Now() + kDoubtLimit;
    absl::Status status;
    do {
      absl::StatusOr<std::unique_ptr<PostgresConnection>> opened = PostgresConnection::Open(where_);
      status = opened.status();
      if (status.ok()) {
        std::string fate;
        status = (*opened)->Query("SELECT pg_xact_status($1::xid8)", {transaction},
                                  [&](const SqlRow& row) {
                                    fate = TextOf(row[0]);
                                    return absl::OkStatus();
                                  });
        if (fate == "committed") return true;
        if (fate == "aborted") return false;
      }
      absl::SleepFor(kDoubtPause);
    } while (absl::Now() < deadline);
    return StoreError(
        absl::StatusCode::kUnavailable, reason::kRegistryUnavailable,
        absl::StrCat("registry: the connection broke while a change was being stored, and whether "
                     "it is could not be learnt within ",
                     absl::FormatDuration(kDoubtLimit), ": ",
                     status.ok() ? "it is still under way" : status.message()));
  }

  const std::string where_;
  ConnectionPool<PostgresConnection> readers_;
  Mutex mutex_;
  std::unique_ptr<PostgresConnection> writer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<Registry>> OpenPostgresRegistry(const std::string& where) {
  STORE_ASSIGN_OR_RETURN(std::unique_ptr<PostgresConnection> writer,
                         PostgresConnection::Open(where));
  STORE_RETURN_IF_ERROR(Migrate(*writer));
  return std::make_unique<PostgresRegistry>(where, std::move(writer));
}

}  // namespace docmem::store
