#include "server/services/adapter_download.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

namespace docmem::server {

absl::StatusOr<bool> AdapterDownloadSource::Next(v1::DownloadAdapterResponse* message) {
  constexpr size_t kChunkBytes = 1 << 20;
  message->Clear();
  if (sent_ < content_.size()) {
    const std::string_view chunk = std::string_view(content_).substr(sent_, kChunkBytes);
    message->set_chunk(chunk.data(), chunk.size());
    digest_.Update(chunk);
    sent_ += chunk.size();
    total_bytes_ += chunk.size();
    return true;
  }
  if (next_file_ < adapter_.files.size()) {
    const store::StoredFile& file = adapter_.files[next_file_++];
    content_.resize(file.bytes);
    sent_ = 0;
    absl::Status read =
        store_->ReadFile(file, std::as_writable_bytes(std::span(content_.data(), file.bytes)));
    if (!read.ok()) return read;
    message->mutable_file()->set_name(file.name);
    message->mutable_file()->set_size_bytes(file.bytes);
    return true;
  }
  if (std::exchange(ended_, true)) return false;
  message->mutable_end()->set_total_bytes(total_bytes_);
  message->mutable_end()->set_sha256(digest_.Hex());
  return true;
}

}  // namespace docmem::server
