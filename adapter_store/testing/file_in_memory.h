#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "adapter_store/files/file_system.h"

namespace docmem::store::store_test {

class FileInMemory : public ReadableFile {
 public:
  explicit FileInMemory(std::string text) : text_(std::move(text)) {}
  uint64_t bytes() const override { return text_.size(); }
  absl::Status Read(uint64_t offset, std::span<std::byte> buffer) const override {
    if (offset + buffer.size() > text_.size()) return absl::DataLossError("the file ends before");
    std::copy_n(std::as_bytes(std::span(text_)).begin() + static_cast<ptrdiff_t>(offset),
                buffer.size(), buffer.begin());
    return absl::OkStatus();
  }

 private:
  const std::string text_;
};

inline std::span<std::byte> BytesOf(std::string& text) {
  return std::as_writable_bytes(std::span(text.data(), text.size()));
}

}  // namespace docmem::store::store_test
