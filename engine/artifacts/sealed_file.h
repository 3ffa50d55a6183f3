#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "engine/formats/safetensors.h"

namespace docmem::engine {

/// A sealed file is a safetensors file in which every byte is checked: the metadata holds the
/// XXH3-128 of each tensor under "xxh3_128.<name>", and that of the header itself under "xxh3_128"
/// (computed with zeros in that place). Cache files and packed adapters are sealed files.

/// The header of the file (a multiple of `alignment`); equal arguments give equal bytes. Throws as
/// `LayOutSafetensors`.
std::string SealedHeader(std::span<const TensorSource> sections, MetadataMap metadata,
                         size_t alignment);

/// Header, then the sections in the given order, without a copy.
void WriteSealedFile(std::span<const TensorSource> sections, const MetadataMap& metadata,
                     size_t alignment, const ByteSink& sink);

/// Checks header and sections. `name` is used in messages. Throws `kDataLoss` naming the section
/// that is cut or altered, or "header". The view refers to `file`.
SafetensorsView OpenSealedFile(std::span<const std::byte> file, const std::string& name);

/// The checked metadata from a file's first bytes (at least its header). Throws as
/// `OpenSealedFile`.
MetadataMap ReadSealedMetadata(std::span<const std::byte> head, const std::string& name);

/// The header with the seal that fits its other bytes; unchanged where there is no seal.
std::string SealHeader(std::string header);

}  // namespace docmem::engine
