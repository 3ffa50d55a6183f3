#include "client/internal/document_streams.h"

#include <utility>

namespace docmem::client::internal {
namespace {

// Progress and at last the result, from Ingest or BuildCache.
template <class Response, class Reader, class Result>
Attempt ReceiveBuild(Reader* reader, const BuildProgressFunction& progress, Result* result) {
  Attempt attempt{.complete = false};
  Response response;
  while (reader->Read(&response)) {
    if (response.has_progress() && progress) progress(response.progress());
    if (response.has_result()) {
      attempt.complete = true;
      *result = std::move(*response.mutable_result());
    }
  }
  attempt.status = reader->Finish();
  return attempt;
}

}  // namespace

Attempt TryIngest(DocumentRpc* rpc, grpc::ClientContext* context, const v1::IngestHeader& header,
                  absl::string_view text, const BuildProgressFunction& progress,
                  v1::IngestResult* result) {
  const auto stream = rpc->Ingest(context);
  v1::IngestRequest first;
  *first.mutable_header() = header;
  ChunkWriter<grpc::ClientReaderWriterInterface<v1::IngestRequest, v1::IngestResponse>,
              v1::IngestRequest>
      writer(stream.get());
  if (progress) {
    writer.on_progress = [&](uint64_t sent_bytes) {
      v1::BuildProgress sent;
      sent.set_phase(v1::BuildProgress::PHASE_RECEIVING);
      sent.set_fraction(static_cast<double>(sent_bytes) / static_cast<double>(text.size()));
      sent.set_received_bytes(sent_bytes);
      progress(sent);
    };
  }
  // A write that fails means that the daemon has ended the call; its status follows below.
  if (stream->Write(first) && writer.Write(text)) writer.End();
  const auto after_sending = [&](const v1::BuildProgress& build) {
    if (build.phase() != v1::BuildProgress::PHASE_RECEIVING) progress(build);
  };
  return ReceiveBuild<v1::IngestResponse>(
      stream.get(), progress ? BuildProgressFunction(after_sending) : nullptr, result);
}

Attempt TryBuildCache(DocumentRpc* rpc, grpc::ClientContext* context,
                      const v1::BuildCacheRequest& request, const BuildProgressFunction& progress,
                      v1::BuildCacheResult* result) {
  const auto reader = rpc->BuildCache(context, request);
  return ReceiveBuild<v1::BuildCacheResponse>(reader.get(), progress, result);
}

Attempt TryImport(DocumentRpc* rpc, grpc::ClientContext* context, const v1::ImportHeader& header,
                  const std::string& path, const SendProgressFunction& progress,
                  v1::Document* document) {
  const absl::StatusOr<uint64_t> size = FileSize(path);
  if (!size.ok()) return {.local = size.status()};
  const auto stream = rpc->Import(context, document);
  v1::ImportDocumentRequest first;
  *first.mutable_header() = header;
  ChunkWriter<grpc::ClientWriterInterface<v1::ImportDocumentRequest>, v1::ImportDocumentRequest>
      writer(stream.get());
  if (progress) writer.on_progress = [&](uint64_t sent_bytes) { progress(sent_bytes, *size); };
  Attempt attempt;
  bool open = stream->Write(first);
  if (open) {
    attempt.local =
        ReadFile(path, [&](absl::string_view bytes) { return open = writer.Write(bytes); });
  }
  if (!attempt.local.ok()) {
    context->TryCancel();
  } else if (open) {
    writer.End();
  }
  attempt.status = stream->Finish();
  return attempt;
}

}  // namespace docmem::client::internal
