// A registry to hold to the contract, and rows to put into it.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "adapter_store/registry/collection_table.h"
#include "adapter_store/registry/document_table.h"
#include "adapter_store/registry/registry.h"
#include "adapter_store/status_macros.h"
#include "adapter_store/testing/store_test_util.h"
#include "adapter_store/testing/test_postgres.h"
#include "gtest/gtest.h"

namespace docmem::store::store_test {

/// How a registry is made: `open` opens (again) the one that lives in `folder`.
struct RegistryMaker {
  const char* name;
  std::function<absl::StatusOr<std::unique_ptr<Registry>>(const std::string& folder)> open;
};

inline std::ostream& operator<<(std::ostream& out, const RegistryMaker& maker) {
  return out << maker.name;
}

/// Every registry that there is.
inline auto AllRegistries() {
  return ::testing::Values(RegistryMaker{"Sqlite",
                                         [](const std::string& folder) {
                                           return OpenSqliteRegistry(folder + "/registry.db");
                                         }},
                           RegistryMaker{"Postgres", [](const std::string& folder) {
                                           return OpenPostgresRegistry(PostgresOf(folder));
                                         }});
}

class RegistryConformanceTest : public ::testing::TestWithParam<RegistryMaker> {
 protected:
  void SetUp() override {
    if (std::string(GetParam().name) == "Postgres" && TestPostgres() == nullptr) {
      GTEST_SKIP() << "tests/with_postgres.py starts a server";
    }
    Open();
  }

  void Open() {
    registry_.reset();
    auto opened = GetParam().open(folder_.path());
    ASSERT_OK(opened);
    registry_ = *std::move(opened);
  }

  void Write(const std::function<absl::Status(Sql&)>& body) { ASSERT_OK(registry_->Write(body)); }
  void Read(const std::function<absl::Status(Sql&)>& body) { ASSERT_OK(registry_->Read(body)); }

  int64_t AddCollection(const std::string& name) {
    int64_t id = 0;
    Write([&](Sql& sql) -> absl::Status {
      CollectionRow row;
      row.name = name;
      row.created = row.updated = kNow;
      STORE_ASSIGN_OR_RETURN(id, InsertCollection(sql, row));
      return absl::OkStatus();
    });
    return id;
  }

  int64_t AddDocument(int64_t collection, const std::string& name, const Labels& labels = {}) {
    int64_t id = 0;
    Write([&](Sql& sql) -> absl::Status {
      DocumentRow row;
      row.collection_id = collection;
      row.name = name;
      row.spec.text_sha256 = Hash(1);
      row.spec.labels = labels;
      row.created = row.updated = kNow;
      STORE_ASSIGN_OR_RETURN(id, InsertDocument(sql, row));
      return absl::OkStatus();
    });
    return id;
  }

  std::vector<std::string> Names(const DocumentRange& range) {
    std::vector<std::string> names;
    Read([&](Sql& sql) -> absl::Status {
      STORE_ASSIGN_OR_RETURN(const std::vector<DocumentRow> rows, ListDocumentRows(sql, range));
      for (const DocumentRow& row : rows) names.push_back(row.name);
      return absl::OkStatus();
    });
    return names;
  }

  static inline const absl::Time kNow = absl::FromUnixMicros(1700000000123456);
  TemporaryFolder folder_;
  std::unique_ptr<Registry> registry_;
};

}  // namespace docmem::store::store_test
