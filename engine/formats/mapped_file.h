#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "engine/formats/error.h"

namespace docmem::engine {

enum class SymbolicLinks {
  kFollow,  // base weights: model folders of the Hugging Face cache consist of links
  kRefuse,  // everything that we or users have stored
};

// A regular file mapped read-only into memory. Movable; reading is thread-safe.
//
// The file must not be shortened while it is mapped: the kernel answers a read behind the new end
// with SIGBUS. Our own files are never rewritten in place, only replaced by a rename.
class MappedFile {
 public:
  // Throws kNotFound if there is no such file, kInvalidArgument if it isn't a regular file or is a
  // link that is refused, kInternal if the system can't map it. The Error's field is the path.
  // An empty file is mapped as an empty span.
  static MappedFile Open(const std::filesystem::path& path,
                         SymbolicLinks links = SymbolicLinks::kFollow);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  // Valid, at the same address, until the object that holds the mapping (also after a move) ends.
  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(data_), size_}; }
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  MappedFile(std::filesystem::path path, const std::byte* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}

  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace docmem::engine
