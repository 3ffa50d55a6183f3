#include "adapter_store/registry/sqlite_registry.h"

#include <stdlib.h>

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapter_store/registry/connection_pool.h"
#include "adapter_store/registry/row_codec.h"
#include "adapter_store/registry/sqlite_connection.h"
#include "adapter_store/registry/sqlite_schema.h"
#include "adapter_store/status_macros.h"
#include "adapter_store/sync.h"

namespace docmem::store {
namespace {

constexpr size_t kMaxReaders = 4;

// SQLite refuses symlinks in the whole path; those above the data folder are the operator's.
std::string ResolveFolder(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return path;
  std::unique_ptr<char, void (*)(void*)> folder(realpath(path.substr(0, slash).c_str(), nullptr),
                                                free);
  return folder == nullptr ? path : absl::StrCat(folder.get(), path.substr(slash));
}

absl::StatusOr<int64_t> VersionOf(Sql& sql) {
  int64_t version = 0;
  STORE_RETURN_IF_ERROR(sql.Query("PRAGMA user_version", {}, [&](const SqlRow& row) {
    version = IntOf(row[0]);
    return absl::OkStatus();
  }));
  return version;
}

// Finds what SQLite itself would meet much later: a damaged page that nothing has asked for, or an
// index that differs from its table and would hide a row.
absl::Status CheckIntegrity(Sql& sql) {
  return sql.Query("PRAGMA integrity_check(1)", {}, [](const SqlRow& row) {
    const std::string found = TextOf(row[0]);
    return found == "ok" ? absl::OkStatus() : DamagedRegistry(found);
  });
}

absl::Status Migrate(SqliteConnection& connection, std::span<const char* const> migrations) {
  return connection.Transact("BEGIN IMMEDIATE", [&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const int64_t version, VersionOf(sql));
    const auto newest = static_cast<int64_t>(migrations.size());
    if (version > newest) {
      return absl::FailedPreconditionError(absl::StrCat("the registry has version ", version,
                                                        ", this program knows up to ", newest,
                                                        "; use a newer DocMem"));
    }
    for (int64_t step = version; step < newest; ++step) {
      STORE_RETURN_IF_ERROR(connection.Script(migrations[static_cast<size_t>(step)]));
    }
    if (version == newest) return absl::OkStatus();
    return connection.Script(absl::StrCat("PRAGMA user_version = ", newest).c_str());
  });
}

// Name → definition, of tables and indexes.
absl::StatusOr<std::map<std::string, std::string>> Definitions(Sql& sql) {
  std::map<std::string, std::string> definitions;
  STORE_RETURN_IF_ERROR(sql.Query("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL", {},
                                  [&](const SqlRow& row) {
                                    definitions[TextOf(row[0])] = TextOf(row[1]);
                                    return absl::OkStatus();
                                  }));
  return definitions;
}

// A flipped bit in a definition leaves a sound database, in which a statement fails that needs what
// is called otherwise now. They are what the migrations make of an empty one.
absl::Status CheckDefinitions(Sql& sql, std::span<const char* const> migrations) {
  STORE_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteConnection> empty,
                         SqliteConnection::Open(":memory:"));
  STORE_RETURN_IF_ERROR(Migrate(*empty, migrations));
  STORE_ASSIGN_OR_RETURN(const auto expected, Definitions(*empty));
  STORE_ASSIGN_OR_RETURN(const auto found, Definitions(sql));
  for (const auto& [name, definition] : expected) {
    const auto entry = found.find(name);
    if (entry == found.end() || entry->second != definition) {
      return DamagedRegistry(absl::StrCat("the definition of '", name, "' isn't DocMem's"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SqliteConnection>> OpenReader(const std::string& path) {
  STORE_ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> reader, SqliteConnection::Open(path));
  STORE_RETURN_IF_ERROR(reader->Script("PRAGMA query_only = ON"));
  return reader;
}

class SqliteRegistry : public Registry {
 public:
  SqliteRegistry(const std::string& path, std::unique_ptr<SqliteConnection> writer)
      : readers_(kMaxReaders, [path] { return OpenReader(path); }), writer_(std::move(writer)) {}

  absl::Status Write(Body body) override {
    MutexLock lock(&mutex_);
    return writer_->Transact("BEGIN IMMEDIATE", body);
  }

  absl::Status Read(Body body) override {
    STORE_ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> reader, readers_.Take());
    const absl::Status status = reader->Transact("BEGIN", body);
    readers_.GiveBack(std::move(reader));
    return status;
  }

 private:
  ConnectionPool<SqliteConnection> readers_;
  Mutex mutex_;
  const std::unique_ptr<SqliteConnection> writer_ ABSL_PT_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<Registry>> OpenSqliteRegistryWith(
    const std::string& path, std::span<const char* const> migrations) {
  const std::string resolved = ResolveFolder(path);
  STORE_ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> writer,
                         SqliteConnection::Open(resolved));
  STORE_RETURN_IF_ERROR(CheckIntegrity(*writer));
  STORE_RETURN_IF_ERROR(Migrate(*writer, migrations));
  STORE_RETURN_IF_ERROR(CheckDefinitions(*writer, migrations));
  return std::make_unique<SqliteRegistry>(resolved, std::move(writer));
}

absl::StatusOr<std::unique_ptr<Registry>> OpenSqliteRegistry(const std::string& path) {
  return OpenSqliteRegistryWith(path, SqliteMigrations());
}

}  // namespace docmem::store
