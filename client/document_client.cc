#include "client/document_client.h"

#include <utility>

#include "client/internal/digest.h"
#include "client/internal/document_streams.h"
#include "client/internal/unary.h"
#include "docmem/v1/document.grpc.pb.h"

namespace docmem::client {
namespace {

using Rpc = internal::DocumentRpc;
using internal::DocumentHeader;
using internal::Repeat;
using internal::Unary;

constexpr size_t kDerivedIdDigits = 32;

Repeat SafeIf(bool safe) { return safe ? Repeat::kSafe : Repeat::kUnsafe; }

template <class Request>
internal::Call ShortCall(const Request& request, Repeat repeat = Repeat::kSafe) {
  return {repeat, internal::kShortTimeout,
          DocumentHeader(request.collection(), request.document())};
}

template <class Request>
internal::Call LongCall(const Request& request, Repeat repeat = Repeat::kSafe) {
  return {repeat, internal::kLongTimeout, DocumentHeader(request.collection(), request.document())};
}

}  // namespace

std::string DerivedDocumentId(absl::string_view text) {
  internal::Sha256 digest;
  digest.Update(text);
  return digest.Hex().substr(0, kDerivedIdDigits);
}

struct DocumentClient::Stub {
  std::unique_ptr<Rpc> rpc;
};

DocumentClient::DocumentClient(std::shared_ptr<const Connection> connection)
    : connection_(std::move(connection)),
      stub_(new Stub{v1::DocumentService::NewStub(connection_->channel().channel())}) {}

DocumentClient::~DocumentClient() = default;

absl::StatusOr<v1::IngestResult> DocumentClient::Ingest(const v1::IngestHeader& header,
                                                        absl::string_view text,
                                                        const BuildProgressFunction& progress,
                                                        const CallOptions& options) {
  const std::string id = header.document().empty() ? DerivedDocumentId(text) : header.document();
  const internal::Call call{SafeIf(!header.replace()), internal::kLongTimeout,
                            DocumentHeader(header.collection(), id)};
  v1::IngestResult result;
  absl::Status status =
      connection_->channel().Run(call, options, [&](grpc::ClientContext* context) {
        return internal::TryIngest(stub_->rpc.get(), context, header, text, progress, &result);
      });
  if (!status.ok()) return status;
  return result;
}

absl::StatusOr<v1::Document> DocumentClient::Get(const v1::GetDocumentRequest& request,
                                                 const CallOptions& options) {
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::Get, request, ShortCall(request),
               options);
}

absl::StatusOr<v1::BatchGetDocumentsResponse> DocumentClient::BatchGet(
    const v1::BatchGetDocumentsRequest& request, const CallOptions& options) {
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::BatchGet, request, {Repeat::kSafe},
               options);
}

absl::StatusOr<v1::ListDocumentsResponse> DocumentClient::List(
    const v1::ListDocumentsRequest& request, const CallOptions& options) {
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::List, request, {Repeat::kSafe},
               options);
}

absl::StatusOr<v1::Document> DocumentClient::Update(const v1::UpdateDocumentRequest& request,
                                                    const CallOptions& options) {
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::Update, request,
               ShortCall(request, SafeIf(request.revision() == 0)), options);
}

absl::StatusOr<v1::DeleteDocumentResponse> DocumentClient::Delete(
    const v1::DeleteDocumentRequest& request, const CallOptions& options) {
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::Delete, request,
               ShortCall(request, SafeIf(request.allow_missing())), options);
}

absl::Status DocumentClient::GetText(const v1::GetTextRequest& request, const ByteSink& sink,
                                     const CallOptions& options) {
  return connection_->channel().Run(ShortCall(request), options, [&](grpc::ClientContext* context) {
    const auto reader = stub_->rpc->GetText(context, request);
    return internal::ReceiveBytes<v1::GetTextResponse>(context, reader.get(), sink);
  });
}

absl::StatusOr<v1::PrefetchResponse> DocumentClient::Prefetch(const v1::PrefetchRequest& request,
                                                              const CallOptions& options) {
  internal::Call call{Repeat::kSafe};
  if (request.wait()) call.default_timeout = internal::kLongTimeout;
  if (request.documents_size() == 1) {
    call.document = DocumentHeader(request.collection(), request.documents(0));
  }
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::Prefetch, request, call, options);
}

absl::StatusOr<v1::BuildCacheResult> DocumentClient::BuildCache(
    const v1::BuildCacheRequest& request, const BuildProgressFunction& progress,
    const CallOptions& options) {
  v1::BuildCacheResult result;
  absl::Status status =
      connection_->channel().Run(LongCall(request), options, [&](grpc::ClientContext* context) {
        return internal::TryBuildCache(stub_->rpc.get(), context, request, progress, &result);
      });
  if (!status.ok()) return status;
  return result;
}

absl::StatusOr<v1::DeleteCacheResponse> DocumentClient::DeleteCache(
    const v1::DeleteCacheRequest& request, const CallOptions& options) {
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::DeleteCache, request,
               ShortCall(request, SafeIf(request.allow_missing())), options);
}

absl::Status DocumentClient::Export(const v1::ExportDocumentRequest& request, const ByteSink& sink,
                                    const CallOptions& options) {
  return connection_->channel().Run(LongCall(request), options, [&](grpc::ClientContext* context) {
    const auto reader = stub_->rpc->Export(context, request);
    return internal::ReceiveBytes<v1::ExportDocumentResponse>(context, reader.get(), sink);
  });
}

absl::StatusOr<v1::Document> DocumentClient::Import(const v1::ImportHeader& header,
                                                    const std::string& path,
                                                    const SendProgressFunction& progress,
                                                    const CallOptions& options) {
  v1::Document document;
  absl::Status status = connection_->channel().Run(
      LongCall(header, Repeat::kUnsafe), options, [&](grpc::ClientContext* context) {
        return internal::TryImport(stub_->rpc.get(), context, header, path, progress, &document);
      });
  if (!status.ok()) return status;
  return document;
}

absl::StatusOr<v1::Document> DocumentClient::SetEvaluation(const v1::SetEvaluationRequest& request,
                                                           const CallOptions& options) {
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::SetEvaluation, request,
               ShortCall(request), options);
}

}  // namespace docmem::client
