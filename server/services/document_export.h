#pragma once

#include <memory>
#include <utility>

#include "adapter_store/archive_writer.h"
#include "docmem/v1/document.pb.h"
#include "engine/formats/digest.h"
#include "server/services/server_stream.h"

namespace docmem::server {

/// Gives a document's archive in chunks with its end message. Executor.
class DocumentExportSource final : public MessageSource<v1::ExportDocumentResponse> {
 public:
  explicit DocumentExportSource(std::unique_ptr<store::ArchiveWriter> archive)
      : archive_(std::move(archive)) {}

  absl::StatusOr<bool> Next(v1::ExportDocumentResponse* message) override;

 private:
  const std::unique_ptr<store::ArchiveWriter> archive_;
  engine::Sha256 digest_;
  bool ended_ = false;
};

}  // namespace docmem::server
