#include "engine/kernels/huge_buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace docmem::engine {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kAlignment = 64;

}  // namespace

size_t HugeBuffer::SizeFor(size_t bytes) {
  const auto up = [bytes](size_t unit) { return (bytes + unit - 1) / unit * unit; };
  const size_t huge = up(kHugePage);
  return huge - bytes <= bytes / 8 ? huge : up(kPage);
}

HugeBuffer::HugeBuffer(size_t bytes) : size_(SizeFor(bytes)) {
  if (size_ == 0) return;
  // Huge pages begin at multiples of their size: map one more, give back what lies around.
  const size_t slack = size_ < kHugePage ? 0 : kHugePage;
  void* mapped =
      mmap(nullptr, size_ + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* const first = static_cast<std::byte*>(mapped);
  const size_t before = slack == 0 ? 0 : -reinterpret_cast<uintptr_t>(first) % kHugePage;
  if (before > 0) munmap(first, before);
  if (before < slack) munmap(first + before + size_, slack - before);
  data_ = first + before;
  madvise(data_, size_, MADV_HUGEPAGE);  // a wish: without huge pages all works, slower
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
