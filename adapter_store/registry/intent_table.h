#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "adapter_store/registry/registry.h"
#include "adapter_store/types.h"

namespace docmem::store {

enum class IntentAction { kPublish = 1, kDelete = 2 };

struct IntentFile {
  int64_t id = 0;
  ArtifactKind kind = ArtifactKind::kText;
};

/// Files that may lie on the disk without a row: being written before it is born, or to be deleted
/// after it went.
struct Intent {
  int64_t id = 0;
  IntentAction action = IntentAction::kPublish;
  std::string instance;     ///< the data folder whose process it is
  uint64_t generation = 0;  ///< and which start of it
  absl::Time expires;
  std::vector<IntentFile> files;
};

/// Stores the intent and gives each of its files an id that was never used before.
absl::StatusOr<Intent> BeginPublication(Sql& sql, Intent intent);
/// Stores the intent with the ids that its files have.
absl::StatusOr<int64_t> BeginDeletion(Sql& sql, const Intent& intent);
/// Deletes the intent of a publication that succeeds. ABORTED when it is gone: it has expired, and
/// another replica has taken its files for garbage.
absl::Status EndPublication(Sql& sql, int64_t id);
absl::Status SetIntentAction(Sql& sql, int64_t id, IntentAction action);
absl::Status DeleteIntent(Sql& sql, int64_t id);
absl::StatusOr<std::vector<Intent>> AllIntents(Sql& sql);

}  // namespace docmem::store
