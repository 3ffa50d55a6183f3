#pragma once

#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "adapter_store/files/file_system.h"

namespace docmem::store {

/// A text that is read as a file.
class FileInMemory : public ReadableFile {
 public:
  explicit FileInMemory(std::string text) : text_(std::move(text)) {}
  uint64_t bytes() const override { return text_.size(); }
  absl::Status Read(uint64_t offset, std::span<std::byte> buffer) const override {
    if (offset > text_.size() || buffer.size() > text_.size() - offset) {
      return absl::DataLossError("the file ends before");
    }
    if (!buffer.empty()) std::memcpy(buffer.data(), text_.data() + offset, buffer.size());
    return absl::OkStatus();
  }

 private:
  const std::string text_;
};

}  // namespace docmem::store
