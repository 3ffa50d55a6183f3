#include "engine/artifacts/file_buffer.h"

#include <ATen/ATen.h>

#include <bit>
#include <new>

#include "engine/kernels/huge_buffer.h"

namespace docmem::engine {

FileBuffer MakeFileBuffer(size_t bytes, at::Device device) {
  if (device.is_cpu()) {
    const auto buffer = std::make_shared<HugeBuffer>(bytes);
    return {buffer, {buffer->Take(bytes), bytes}};
  }
  try {
    const auto tensor = std::make_shared<at::Tensor>(
        at::empty({static_cast<int64_t>(bytes)}, at::TensorOptions(at::kByte).pinned_memory(true)));
    return {tensor, {static_cast<std::byte*>(tensor->mutable_data_ptr()), bytes}};
  } catch (const c10::Error&) {
    throw std::bad_alloc();
  }
}

// libtorch's page-locked blocks have powers of two.
size_t FileBufferBytes(size_t bytes, at::Device device) {
  return device.is_cpu() ? HugeBuffer::SizeFor(bytes) : std::bit_ceil(bytes);
}

}  // namespace docmem::engine
