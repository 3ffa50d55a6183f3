#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <memory>
#include <span>

namespace docmem::engine {

/// Memory that an artifact file is read into, and what keeps it alive.
struct FileBuffer {
  std::shared_ptr<const void> owner;
  std::span<std::byte> bytes;
};

/// Memory for a file whose tensors are wanted on `device`: on huge pages on the CPU, where they
/// alias it; page-locked beside a GPU, where they are copied. Aligned to 64. Throws
/// `std::bad_alloc`.
FileBuffer MakeFileBuffer(size_t bytes, at::Device device);

/// What such a buffer occupies.
size_t FileBufferBytes(size_t bytes, at::Device device);

}  // namespace docmem::engine
