#pragma once

#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "adapter_store/registry/registry.h"

namespace docmem::store {

/// As `OpenSqliteRegistry`, with migrations of the caller's.
absl::StatusOr<std::unique_ptr<Registry>> OpenSqliteRegistryWith(
    const std::string& path, std::span<const char* const> migrations);

}  // namespace docmem::store
