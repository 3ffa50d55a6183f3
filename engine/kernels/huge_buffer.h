#pragma once

#include <cstddef>

namespace docmem::engine {

/// Memory for large read-only data that is swept again and again, on huge pages where the system
/// has them (read up to twice as fast as on small ones). Zero at first. Not copyable.
class HugeBuffer {
 public:
  /// What a buffer for `bytes` occupies. Whole pages: up to 4 KiB more, or up to an eighth where
  /// that fills the last huge page.
  static size_t SizeFor(size_t bytes);

  /// Throws `std::bad_alloc`.
  explicit HugeBuffer(size_t bytes);
  ~HugeBuffer();
  HugeBuffer(const HugeBuffer&) = delete;
  HugeBuffer& operator=(const HugeBuffer&) = delete;

  /// The next `bytes` bytes, aligned to 64. The sum of all, each rounded up to 64, is at most what
  /// the buffer was made for.
  std::byte* Take(size_t bytes);

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  size_t taken_ = 0;
};

}  // namespace docmem::engine
