#pragma once

#include <grpcpp/client_context.h>

#include <string>

#include "absl/strings/string_view.h"
#include "client/document_client.h"
#include "client/internal/chunks.h"
#include "client/internal/retrying_channel.h"
#include "docmem/v1/document.grpc.pb.h"

namespace docmem::client::internal {

using DocumentRpc = v1::DocumentService::StubInterface;

/// One try of Ingest.
Attempt TryIngest(DocumentRpc* rpc, grpc::ClientContext* context, const v1::IngestHeader& header,
                  absl::string_view text, const BuildProgressFunction& progress,
                  v1::IngestResult* result);

/// One try of BuildCache.
Attempt TryBuildCache(DocumentRpc* rpc, grpc::ClientContext* context,
                      const v1::BuildCacheRequest& request, const BuildProgressFunction& progress,
                      v1::BuildCacheResult* result);

/// One try of Import.
Attempt TryImport(DocumentRpc* rpc, grpc::ClientContext* context, const v1::ImportHeader& header,
                  const std::string& path, const SendProgressFunction& progress,
                  v1::Document* document);

/// Receives chunks and their StreamEnd, from GetText or Export.
template <class Response, class Reader>
Attempt ReceiveBytes(grpc::ClientContext* context, Reader* reader, const ByteSink& sink) {
  Attempt attempt{.complete = false};
  ChunkReader chunks;
  Response response;
  while (attempt.local.ok() && reader->Read(&response)) {
    if (response.has_chunk()) {
      attempt.delivered = true;
      chunks.Take(response.chunk());
      attempt.local = sink(response.chunk());
    } else if (response.has_end()) {
      attempt.local = chunks.End(response.end());
    }
  }
  if (!attempt.local.ok()) context->TryCancel();
  attempt.complete = chunks.complete();
  attempt.status = reader->Finish();
  return attempt;
}

}  // namespace docmem::client::internal
