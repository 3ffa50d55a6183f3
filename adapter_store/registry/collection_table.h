#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "adapter_store/registry/registry.h"
#include "adapter_store/types.h"

namespace docmem::store {

struct CollectionRow {
  int64_t id = 0;
  std::string name;
  CollectionSettings settings;
  uint64_t revision = 1;
  absl::Time created;
  absl::Time updated;
  bool damaged = false;  ///< read only: its checksum is wrong
};

struct CollectionUsage {
  uint64_t documents = 0;
  uint64_t bytes = 0;
};

/// Returns the new id; ALREADY_EXISTS for a taken name.
absl::StatusOr<int64_t> InsertCollection(Sql& sql, const CollectionRow& row);
absl::StatusOr<std::optional<CollectionRow>> FindCollection(Sql& sql, const std::string& name);
absl::StatusOr<std::optional<CollectionRow>> FindCollectionById(Sql& sql, int64_t id);
/// By name, those behind `after`.
absl::StatusOr<std::vector<CollectionRow>> ListCollectionRows(Sql& sql, const std::string& after,
                                                              uint32_t limit);
absl::Status UpdateCollectionRow(Sql& sql, const CollectionRow& row);
/// FAILED_PRECONDITION while it has documents.
absl::Status DeleteCollectionRow(Sql& sql, int64_t id);
absl::StatusOr<CollectionUsage> UsageOfCollection(Sql& sql, int64_t id);

/// Settings of the whole folder.
absl::StatusOr<std::optional<std::string>> FindSetting(Sql& sql, const std::string& key);
absl::Status PutSettingRow(Sql& sql, const std::string& key, const std::string& value);

}  // namespace docmem::store
