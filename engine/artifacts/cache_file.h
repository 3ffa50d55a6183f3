#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "engine/artifacts/cache.h"

namespace docmem::engine {

/// Receives a file's bytes piece by piece, in order; pieces are valid during the call.
using ByteSink = std::function<void(std::span<const std::byte>)>;

/// The bytes of a whole artifact file and what keeps them alive; tensors that are decoded from it
/// alias it, so the bytes mustn't change.
struct SharedBytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

/// The cache file: safetensors with `keys [N, D]`, `values [N, D]`, `positions [N]` int32,
/// `offsets [L·G + 1]` int64; payload 64-byte aligned; the identity's fields and the XXH3-128 of
/// every section in the metadata. No timestamps, keys sorted: equal caches give equal bytes.

/// The file's header (everything before the payload); its SHA-256 and length go into the registry.
std::string CacheFileHeader(const Cache& cache);

/// Length of the whole file, header included.
uint64_t CacheFileBytes(const Cache& cache);

/// Writes header and payload to `sink` without a copy of the payload (device tensors are copied to
/// RAM section by section). What the sink throws passes through.
void WriteCacheFile(const Cache& cache, const ByteSink& sink);

/// Decodes a whole file in memory. The result's tensors alias `file` on the CPU, and are copied
/// to `device` otherwise. Verifies every section's checksum, shapes, offsets and positions.
/// Throws `kDataLoss` naming what is damaged. Doesn't look at the running model:
/// see `CacheIdentity::RequireModel`.
std::shared_ptr<const Cache> ReadCacheFile(SharedBytes file, at::Device device);

/// Reads the identity from a file's first bytes (the header) alone.
CacheIdentity ReadCacheFileIdentity(std::span<const std::byte> header);

}  // namespace docmem::engine
