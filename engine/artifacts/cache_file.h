#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/artifacts/cache.h"
#include "engine/artifacts/shared_bytes.h"
#include "engine/formats/safetensors.h"

namespace docmem::engine {

/// The cache file: safetensors with `keys [N, D]`, `values [N, D]`, `positions [N]` int32,
/// `offsets [L·G + 1]` int64; the payload starts at `kCacheHeaderBytes`; the identity's fields and
/// the XXH3-128 of every section and of the header itself are in the metadata. No timestamps, keys
/// sorted: equal caches give equal bytes.
inline constexpr size_t kCacheHeaderBytes = 4096;

/// The file's header (everything before the payload); its SHA-256 goes into the registry.
std::string CacheFileHeader(const Cache& cache);

/// Length of the whole file, header included.
uint64_t CacheFileBytes(const Cache& cache);

/// Writes header and payload to `sink` without a copy of the payload (device tensors are copied to
/// RAM section by section). What the sink throws passes through.
void WriteCacheFile(const Cache& cache, const ByteSink& sink);

/// Decodes a whole file in memory. The result's tensors alias `file` on the CPU, and are copied
/// to `device` otherwise. Verifies every section's checksum, shapes, offsets and positions.
/// Throws `kDataLoss` naming what is damaged ("header", "keys", …), `kFailedPrecondition` for
/// another format version. Doesn't look at the running model: see `CacheIdentity::RequireModel`.
std::shared_ptr<const Cache> ReadCacheFile(SharedBytes file, at::Device device);

/// Reads the identity from a file's first bytes (at least the header). Throws as `ReadCacheFile`.
CacheIdentity ReadCacheFileIdentity(std::span<const std::byte> header);

}  // namespace docmem::engine
