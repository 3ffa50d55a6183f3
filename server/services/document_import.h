#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "docmem/v1/document.pb.h"
#include "server/ingest/archives.h"
#include "server/interceptors/late.h"
#include "server/services/client_stream.h"
#include "server/services/received_bytes.h"

namespace docmem::server {

/// Takes an archive piece by piece and publishes its document once all of it, the end message
/// included, has come. Executor.
class DocumentImportSink final : public MessageSink<v1::ImportDocumentRequest, v1::Document> {
 public:
  /// Both must outlive the sink.
  DocumentImportSink(const Late<Archives>* archives, Call* call)
      : archives_(archives), call_(call) {}

  absl::Status OnMessage(v1::ImportDocumentRequest* message) override;
  absl::Status OnEnd(v1::Document* response) override;

 private:
  absl::Status TakeHeader(const v1::ImportHeader& header);
  absl::Status TakeChunk(const std::string& chunk);
  absl::Status TakeEnd(const v1::StreamEnd& end);

  const Late<Archives>* const archives_;
  Call* const call_;
  std::unique_ptr<IncomingArchive> archive_;  // null before the header
  ReceivedBytes received_;
  bool ended_ = false;
};

}  // namespace docmem::server
