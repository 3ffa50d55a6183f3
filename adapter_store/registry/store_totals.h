#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "adapter_store/registry/registry.h"

namespace docmem::store {

struct StoreTotals {
  uint64_t collections = 0;
  uint64_t documents = 0;
  uint64_t quarantined_documents = 0;
  uint64_t texts = 0;
  uint64_t caches = 0;
  uint64_t adapters = 0;
  uint64_t checkpoints = 0;
  uint64_t text_bytes = 0;
  uint64_t cache_bytes = 0;
  uint64_t adapter_bytes = 0;
  uint64_t checkpoint_bytes = 0;
  uint64_t quarantined_files = 0;
};

/// Sums over the whole registry.
absl::StatusOr<StoreTotals> TotalsOf(Sql& sql);

}  // namespace docmem::store
