#pragma once

#include <memory>
#include <string>

#include "adapter_store/adapter_store.h"
#include "engine/artifacts/cache.h"
#include "engine/engine.h"

namespace docmem::server {

inline constexpr char kCacheFileName[] = "cache.safetensors";

/// A cache's row, all of it from the cache itself but the system text in its head, which is left
/// out.
store::CacheSpec CacheSpecOf(const engine::Engine& engine, const engine::Cache& cache);

/// A cache as the store takes it: its row, and a producer that writes its file without a copy of
/// the payload. `system_text` is what the head was made with; empty: the prompt format's own.
store::NewCache CacheArtifact(const engine::Engine& engine,
                              std::shared_ptr<const engine::Cache> cache,
                              const std::string& system_text);

}  // namespace docmem::server
