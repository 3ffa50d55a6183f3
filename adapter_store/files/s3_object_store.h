#pragma once

#include <cstddef>
#include <memory>

#include "adapter_store/files/object_store.h"
#include "adapter_store/files/s3_connection.h"

namespace docmem::store {

/// Files above this go up in parts, of this size or a thousandth of the file; each is held in
/// memory while it is sent. S3 wants at least 5 MiB.
inline constexpr size_t kS3PartBytes = size_t{16} << 20;

/// A bucket of an S3-compatible object store. Every body is sent with its SHA-256, so that the
/// server refuses one that was damaged on its way.
std::unique_ptr<ObjectStore> S3ObjectStore(S3Place place, S3Patience patience = {},
                                           size_t part_bytes = kS3PartBytes);

}  // namespace docmem::store
