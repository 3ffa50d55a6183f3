#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/artifacts/mode.h"
#include "engine/compression/profile.h"
#include "engine/formats/safetensors.h"
#include "engine/model/model_identity.h"

namespace docmem::engine {

/// Version of the cache file format that this code writes.
inline constexpr uint32_t kCacheFormatVersion = 1;

/// Everything that made a cache. The mode and the prompt's later parts aren't in it: equal caches
/// have equal identities.
struct CacheIdentity {
  ModelIdentity model;
  std::string context_digest;  ///< over the context's token ids, see `ContextDigest`
  int64_t context_tokens = 0;  ///< S
  int64_t head_tokens = 0;
  uint32_t ratio_ppm = 0;
  std::string kv_dtype;            ///< "float32", "bfloat16" (later "int8")
  std::string writer{kBaseMaker};  ///< "base" or the content hash of the adapter that wrote the KV
  std::string scorer{kNoMaker};    ///< "base", an adapter's hash, or "none" at ρ = 0 and 1
  std::string profile = "none";    ///< profile with constants and seed in one canonical string
  uint32_t format_version = kCacheFormatVersion;

  bool operator==(const CacheIdentity&) const = default;

  /// Field name → value, as stored in the file's metadata.
  MetadataMap Fields() const;
  /// Other keys are ignored. Throws `kDataLoss` naming a field that is missing or malformed;
  /// `kFailedPrecondition` for another format version.
  static CacheIdentity FromFields(const MetadataMap& fields);

  /// SHA-256 over the fields, hex.
  std::string Digest() const;

  /// Throws `kFailedPrecondition` naming the first field in which the cache differs from the
  /// running model, with both values and what to do (`BuildCache`).
  void RequireModel(const ModelIdentity& running) const;

  /// A cache that an adapter wrote or scored answers only with that adapter. `adapter_hash` is the
  /// request's, empty for none. Throws `kFailedPrecondition` naming "adapter", with both hashes.
  void RequireAdapter(std::string_view adapter_hash) const;
};

/// SHA-256 of the ids as little-endian int32, hex.
std::string ContextDigest(std::span<const int32_t> context_ids);

/// The identity's `profile` value of a compression: name, constants and seed; "none" where nothing
/// is scored (ρ = 0 and 1).
std::string ProfileIdentity(const Compression& compression);

}  // namespace docmem::engine
