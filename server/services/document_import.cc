#include "server/services/document_import.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/error.h"
#include "server/services/messages.h"
#include "server/services/validate.h"

namespace docmem::server {
absl::Status DocumentImportSink::OnMessage(v1::ImportDocumentRequest* message) {
  if (ended_) return PartOutOfOrder("nothing may follow the end message");
  switch (message->part_case()) {
    case v1::ImportDocumentRequest::kHeader:
      return TakeHeader(message->header());
    case v1::ImportDocumentRequest::kChunk:
      return TakeChunk(message->chunk());
    case v1::ImportDocumentRequest::kEnd:
      return TakeEnd(message->end());
    case v1::ImportDocumentRequest::PART_NOT_SET:
      break;
  }
  return PartOutOfOrder("is empty; it must be header, chunk or end");
}

absl::Status DocumentImportSink::TakeHeader(const v1::ImportHeader& header) {
  if (archive_ != nullptr) return PartOutOfOrder("header must be the first message, once");
  absl::StatusOr<std::string> collection = CheckCollection(*call_, header.collection());
  if (!collection.ok()) return collection.status();
  absl::Status status;
  if (!header.document().empty()) status = CheckId("document", header.document());
  if (header.replace() && header.revision() == 0) {
    status.Update(InvalidField("revision", "is required with replace"));
  }
  if (!status.ok()) return status;
  call_->About(*collection, header.document());
  archive_ = (*archives_)
                 ->Import({.key = {*std::move(collection), header.document()},
                           .replaces = header.replace() ? header.revision() : 0,
                           .max_text_bytes = kMaxTextBytes,
                           .max_adapter_bytes = kMaxAdapterBytes});
  return absl::OkStatus();
}

absl::Status DocumentImportSink::TakeChunk(const std::string& chunk) {
  if (archive_ == nullptr) return PartOutOfOrder("chunk must follow the header");
  received_.Add(chunk);
  return archive_->Take(chunk);
}

absl::Status DocumentImportSink::TakeEnd(const v1::StreamEnd& end) {
  if (archive_ == nullptr) return PartOutOfOrder("end must follow the header");
  if (absl::Status status = received_.CheckEnd(end); !status.ok()) return status;
  ended_ = true;
  return absl::OkStatus();
}

absl::Status DocumentImportSink::OnEnd(v1::Document* response) {
  if (!ended_) return PartOutOfOrder("the stream stopped before its end message");
  const absl::StatusOr<store::Document> document = archive_->Publish();
  if (!document.ok()) return document.status();
  *response = ToMessage(*document);
  return absl::OkStatus();
}

}  // namespace docmem::server
