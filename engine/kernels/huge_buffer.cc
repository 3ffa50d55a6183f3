#include "engine/kernels/huge_buffer.h"

#include <sys/mman.h>

#include <new>

namespace docmem::engine {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kAlignment = 64;

}  // namespace

HugeBuffer::HugeBuffer(size_t bytes) : size_((bytes + kHugePage - 1) / kHugePage * kHugePage) {
  if (size_ == 0) return;
  void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  madvise(memory, size_, MADV_HUGEPAGE);  // a wish: without huge pages all works, slower
  data_ = static_cast<std::byte*>(memory);
}

HugeBuffer::~HugeBuffer() {
  if (data_ != nullptr) munmap(data_, size_);
}

std::byte* HugeBuffer::Take(size_t bytes) {
  std::byte* taken = data_ + taken_;
  taken_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (taken_ > size_) throw std::bad_alloc();
  return taken;
}

}  // namespace docmem::engine
