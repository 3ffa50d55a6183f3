#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "adapter_store/adapter_store.h"
#include "server/runtime/residency.h"
#include "server/telemetry/log.h"

namespace docmem::server {

/// Gives pinned documents their pins back after a start and begins to load their memories; says in
/// the log what couldn't be. Returns how many documents are pinned. Reads the registry only.
absl::StatusOr<uint32_t> RestorePins(store::AdapterStore& store, Residency& residency, Log& log);

}  // namespace docmem::server
