#include "server/services/document_export.h"

#include <string_view>

namespace docmem::server {

absl::StatusOr<bool> DocumentExportSource::Next(v1::ExportDocumentResponse* message) {
  if (ended_) return false;
  const absl::StatusOr<std::string_view> piece = archive_->Next();
  if (!piece.ok()) return piece.status();
  if (!piece->empty()) {
    message->set_chunk(piece->data(), piece->size());
    digest_.Update(*piece);
    return true;
  }
  message->mutable_end()->set_total_bytes(archive_->total_bytes());
  message->mutable_end()->set_sha256(digest_.Hex());
  ended_ = true;
  return true;
}

}  // namespace docmem::server
