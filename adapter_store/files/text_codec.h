#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace docmem::store {

/// A stored text's name inside its artifact.
inline constexpr char kTextFileName[] = "text.zst";

/// One zstd frame with content size and checksum; the `zstd` program reads it.
std::string CompressText(const std::string& text);

/// DATA_LOSS unless `frame` is one undamaged frame of exactly `text_bytes` bytes. Never allocates
/// more than that.
absl::StatusOr<std::string> DecompressText(std::span<const std::byte> frame, uint64_t text_bytes);

}  // namespace docmem::store
