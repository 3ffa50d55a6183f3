#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/connection.h"
#include "client/options.h"
#include "docmem/v1/document.pb.h"

namespace docmem::client {

/// Told on the calling thread. While the text is being sent, `phase` is PHASE_RECEIVING and
/// `fraction` the part that has left this side.
using BuildProgressFunction = std::function<void(const v1::BuildProgress&)>;

/// Takes received bytes in order, on the calling thread. A failure ends the call with it.
using ByteSink = std::function<absl::Status(absl::string_view)>;

/// Told the bytes sent so far of all bytes.
using SendProgressFunction = std::function<void(uint64_t sent_bytes, uint64_t total_bytes)>;

/// The id that a text gets when none is given: the first 32 digits of its SHA-256.
std::string DerivedDocumentId(absl::string_view text);

/// Documents and their caches. Thread-safe. Requests, replies and errors are those of
/// docmem/v1/document.proto. Functions with progress or a sink block until the stream has ended.
class DocumentClient {
 public:
  explicit DocumentClient(std::shared_ptr<const Connection> connection);
  ~DocumentClient();

  /// Sends `text`, valid UTF-8, in chunks. Repeated over a lost connection unless it replaces.
  absl::StatusOr<v1::IngestResult> Ingest(const v1::IngestHeader& header, absl::string_view text,
                                          const BuildProgressFunction& progress = nullptr,
                                          const CallOptions& options = {});
  absl::StatusOr<v1::Document> Get(const v1::GetDocumentRequest& request,
                                   const CallOptions& options = {});
  absl::StatusOr<v1::BatchGetDocumentsResponse> BatchGet(
      const v1::BatchGetDocumentsRequest& request, const CallOptions& options = {});
  absl::StatusOr<v1::ListDocumentsResponse> List(const v1::ListDocumentsRequest& request,
                                                 const CallOptions& options = {});
  absl::StatusOr<v1::Document> Update(const v1::UpdateDocumentRequest& request,
                                      const CallOptions& options = {});
  absl::StatusOr<v1::DeleteDocumentResponse> Delete(const v1::DeleteDocumentRequest& request,
                                                    const CallOptions& options = {});
  /// DATA_LOSS where what came isn't what was sent; the sink has seen it by then.
  absl::Status GetText(const v1::GetTextRequest& request, const ByteSink& sink,
                       const CallOptions& options = {});
  absl::StatusOr<v1::PrefetchResponse> Prefetch(const v1::PrefetchRequest& request,
                                                const CallOptions& options = {});
  absl::StatusOr<v1::BuildCacheResult> BuildCache(const v1::BuildCacheRequest& request,
                                                  const BuildProgressFunction& progress = nullptr,
                                                  const CallOptions& options = {});
  absl::StatusOr<v1::DeleteCacheResponse> DeleteCache(const v1::DeleteCacheRequest& request,
                                                      const CallOptions& options = {});
  /// As GetText, with the bytes of one exported file.
  absl::Status Export(const v1::ExportDocumentRequest& request, const ByteSink& sink,
                      const CallOptions& options = {});
  /// Sends the exported file at `path`.
  absl::StatusOr<v1::Document> Import(const v1::ImportHeader& header, const std::string& path,
                                      const SendProgressFunction& progress = nullptr,
                                      const CallOptions& options = {});
  absl::StatusOr<v1::Document> SetEvaluation(const v1::SetEvaluationRequest& request,
                                             const CallOptions& options = {});

 private:
  struct Stub;
  const std::shared_ptr<const Connection> connection_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace docmem::client
